// The choices of implicit_gemm.h, and its kernels for windows.
#include <algorithm>

#include "kernels/conv/implicit_gemm/direct_conv.h"
#include "kernels/conv/implicit_gemm/implicit_gemm_kernel.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

template <int kShape, int kWarpsM, int kWarpsN>
using Gathered =
    TileShape<kGatheredTiles[kShape].rows, kGatheredTiles[kShape].columns, kWarpsM, kWarpsN>;

template <typename Body>
void with_shape(int shape, const Body& body) {
  switch (shape) {
    case 0:
      return body.template operator()<Gathered<0, 2, 2>>();
    case 1:
      return body.template operator()<Gathered<1, 4, 2>>();
    case 2:
      return body.template operator()<Gathered<2, 4, 2>>();
    case 3:
      return body.template operator()<Gathered<3, 4, 2>>();
    default:
      return body.template operator()<Gathered<4, 4, 2>>();
  }
}

int64_t over(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

void launch_window_gemm(const Gpu& gpu, const ImplicitGemmParams& n, ConvOperator op, DType dtype,
                        int shape) {
  with_shape(shape, [&]<typename Shape>() {
    with_op(op, n.sign, dtype, [&]<typename T, ConvOperator kOp, bool kSign>() {
      constexpr int kBytes = SharedLayout<Shape, kOp, kSign>::bytes;
      static_assert(kSlotBytes<Shape> <= kBytes);
      launch_implicit_gemm<T, Shape, kOp, kSign>(gpu, n, kBytes, kBytes);
    });
  });
}

ImplicitGemm::ImplicitGemm(Context& context, const ConvCase& c, ConvOperator op, bool with_sign)
    : c_(c), op_(op), with_sign_(with_sign), plain_(is_matrix_product(c)) {
  const auto ask = [&](cudaDeviceAttr what) {
    int value = 0;
    check_cuda(cudaDeviceGetAttribute(&value, what, context.ordinal()), "asking for the device");
    return value;
  };
  clusters_ = has_clusters(context);
  processors_ = ask(cudaDevAttrMultiProcessorCount);
  shared_limit_ = ask(cudaDevAttrMaxSharedMemoryPerBlockOptin) - 2048;  // the driver reserves some
  const ImplicitGemmParams n = implicit_gemm_params(c, op);
  const std::vector<FilterTap> taps = filter_taps(c, op);
  taps_ = Tensor(context, {static_cast<int64_t>(taps.size() * sizeof(FilterTap))}, DType::u8);
  copy_bytes(context, taps_.raw(), Device::gpu, taps.data(), Device::cpu, taps_.bytes());
  rows_ = n.rows;
  columns_ = n.columns + (op == ConvOperator::wgrad);  // with the bias's column
  depth_ = n.depth;
  direct_conv_ = std::make_unique<DirectConv>(context, c, op, with_sign);
  add_choices();
}

ImplicitGemm::~ImplicitGemm() = default;

int64_t ImplicitGemm::blocks_of(const Choice& choice) const {
  const TileExtent& block = (plain_ ? kMatrixTiles : kGatheredTiles)[choice.shape];
  return over(rows_, block.rows) * over(columns_, block.columns) * c_.groups * choice.pieces;
}

void ImplicitGemm::add_choices() {
  const int64_t steps = over(depth_, kTileDepth);
  for (int shape = 0; shape < kTileShapes && c_.pooled.empty(); ++shape) {
    const TileExtent& block = (plain_ ? kMatrixTiles : kGatheredTiles)[shape];
    const int64_t results = block.rows * block.columns, tiles = blocks_of({shape});
    if (plain_ && results > 64 * 64 && shared_limit_ < (160 << 10)) continue;
    choices_.push_back({shape, 1, 1});
    const auto add = [&](int64_t pieces) {
      int cluster = clusters_ ? 8 : 1;
      while (cluster > pieces) cluster /= 2;
      if (pieces <= 1) return;
      pieces -= pieces % cluster;
      const int64_t outer = pieces / cluster;
      if (outer > 1 && (tiles * cluster > Gpu::kCounters || tiles * outer * results > Gpu::kParts))
        return;
      if (pieces > choices_.back().pieces)
        choices_.push_back({shape, static_cast<int>(pieces), cluster});
    };
    // One cluster per tile, so that no sums go through global memory.
    for (int64_t pieces : {2, 4, 8}) {
      if (plain_ && pieces <= steps && tiles * pieces <= 8 * processors_) add(pieces);
    }
    for (int64_t blocks : {132, 264, 528, 1056}) add(std::min(blocks / tiles, steps / 2));
  }
  for (size_t window = 0; window < direct_conv_->choices().size(); ++window)
    choices_.push_back({0, 1, 1, static_cast<int>(window)});
}

ImplicitGemm::Choice ImplicitGemm::untimed() const {
  Choice best = choices_.front();
  double minimum = 1e30;
  for (const Choice& choice : choices_) {
    if (choice.window >= 0) continue;
    const double blocks = static_cast<double>(blocks_of(choice));
    if (!plain_) {  // the largest tiles whose blocks fill the card
      if (blocks >= 132) best = choice;
      continue;
    }
    // Estimate of what a multiprocessor loads, in elements along the reduction, plus a cost for
    // clusters.
    const TileExtent& block = kMatrixTiles[choice.shape];
    const double cost = std::max(1.0, blocks / processors_) *
                            static_cast<double>(over(depth_, kTileDepth * choice.pieces)) *
                            (block.rows + block.columns) +
                        (choice.pieces > 1 ? 64 : 0) + (choice.pieces > choice.cluster ? 256 : 0);
    if (cost < minimum) {
      minimum = cost;
      best = choice;
    }
  }
  return best;
}

std::string ImplicitGemm::text_of(const Choice& choice) const {
  if (choice.window < 0) return cat(choice.shape, "/", choice.pieces, "/", choice.cluster);
  const DirectConv::Choice& window = direct_conv_->choices()[choice.window];
  return cat("window ", window.strip, "/", window.shape, "/", window.parts, "/", window.slices);
}

void ImplicitGemm::launch(Context& context, const ImplicitGemmTensors& t,
                          const Choice& choice) const {
  if (choice.window >= 0)
    return direct_conv_->run(context, t, direct_conv_->choices()[choice.window]);
  const Gpu& gpu = context.gpu();
  ImplicitGemmParams n = implicit_gemm_params(c_, op_);
  n.pieces = choice.pieces;
  n.steps_each = static_cast<int>(over(over(n.depth, kTileDepth), choice.pieces));
  while (1 << n.cluster_bits < choice.cluster) ++n.cluster_bits;
  n.room = shared_limit_;
  n.at_once = processors_;
  n.taps = static_cast<const FilterTap*>(taps_.raw());
  n.parts = gpu.parts;
  n.counters = gpu.counters;
  n.a = op_ == ConvOperator::fprop ? t.x : t.dy;
  n.b = op_ == ConvOperator::wgrad ? t.x : t.w;
  n.sign = t.y;
  n.bias = op_ == ConvOperator::fprop ? t.b : nullptr;
  n.out = t.out;
  n.relu = op_ == ConvOperator::fprop && c_.relu;
  n.db = t.db;
  n.accumulate_w = t.accumulate_w;
  n.accumulate_b = t.accumulate_b;
  n.dropout = t.dropout;
  n.dropout_layout = DropoutLayout::of(Shape{c_.y.count()});
  if (n.db) ++n.columns;
  if (plain_) return launch_matrix_gemm(gpu, n, op_, c_.dtype, choice.shape);
  launch_window_gemm(gpu, n, op_, c_.dtype, choice.shape);
}

void ImplicitGemm::run(Context& context, const ImplicitGemmTensors& tensors) const {
  launch(context, tensors, choice_);
}

bool ImplicitGemm::adds() const { return choice_.window >= 0 && direct_conv_->adds(); }

std::string ImplicitGemm::key() const {
  const ImplicitGemmParams n = implicit_gemm_params(c_, op_);
  return cat("implicit_gemm ", static_cast<int>(op_), with_sign_ ? " sign " : " ",
             name_of(c_.dtype), " ", rows_, "x", columns_, "x", depth_, " groups ", n.groups,
             " image ", n.height, "x", n.width, "x", n.channels, " positions ", n.by_plane.value,
             " by ", n.by_row.value, " kernel ", n.kernel_width, " start ", n.start[0], ",",
             n.start[1], " step ", n.step[0], ",", n.step[1], " stride ", n.by_stride[0].value, ",",
             n.by_stride[1].value, " tap ", n.tap[0], ",", n.tap[1], " vectors ", n.a_vector, ",",
             n.b_vector, c_.pooled.empty() ? "" : " pooled", plain_ ? " plain" : "",
             direct_conv_->adds() ? " adds" : "");
}

void ImplicitGemm::tune(Context& context, const ImplicitGemmTensors& scratch) {
  Tuning& tuning = context.gpu().tuning;
  const auto take = [&](const std::optional<std::string>& answer) {
    const auto found = std::find_if(choices_.begin(), choices_.end(),
                                    [&](const Choice& c) { return text_of(c) == answer; });
    if (found == choices_.end()) return false;
    choice_ = *found;
    return true;
  };
  if (take(tuning.find(key()))) return;
  choice_ = untimed();
  if (tuning.candidates() <= 1 || !scratch.out) return;
  double best = 1e30;
  for (const Choice& choice : choices_) {
    const double seconds = tuning.time_repeated(context, [&] { launch(context, scratch, choice); });
    if (seconds < best) {
      best = seconds;
      choice_ = choice;
    }
  }
  take(tuning.remember(key(), text_of(choice_)));
}

}  // namespace crema
