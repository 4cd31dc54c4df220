// The choices of implicit_gemm.h, and its kernels for windows.
#include <algorithm>

#include "base/ceil_div.h"
#include "device/multiprocessors.h"
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

}  // namespace

void launch_gathered_gemm(const Gpu& gpu, const ImplicitGemmParams& n, ConvCall call, DType dtype,
                          int shape) {
  with_shape(shape, [&]<typename Shape>() {
    with_call(call, n.operands.relu_y, dtype, [&]<typename T, ConvCall kCall, bool kReluMask>() {
      constexpr int kBytes = SharedLayout<Shape, kCall, kReluMask>::bytes;
      static_assert(kSlotBytes<Shape> <= kBytes);
      launch_implicit_gemm<T, Shape, kCall, kReluMask>(gpu, n, kBytes, kBytes);
    });
  });
}

ImplicitGemm::ImplicitGemm(Context& context, const ConvCase& c, ConvCall call, bool with_relu_y)
    : c_(c), call_(call), with_relu_y_(with_relu_y), is_matrix_product_(is_matrix_product(c)) {
  require(!c.dropout || c.groups == 1, "implicit GEMM with groups and a dropout");
  const GpuCard& card = context.gpu().card;
  clusters_ = card.has_clusters();
  processors_ = card.multiprocessors;
  // Half of it, and static variables, fit twice on a multiprocessor.
  shared_limit_ = card.shared_bytes - 2 * GpuCard::kReservedShared;
  const ImplicitGemmGeometry g = implicit_gemm_geometry(c, call, /*bias_column=*/true);
  const std::vector<FilterTap> taps = filter_taps(c, call);
  taps_ = Tensor(context, {static_cast<int64_t>(taps.size() * sizeof(FilterTap))}, DType::u8);
  copy_bytes(context, taps_.raw(), Device::gpu, taps.data(), Device::cpu, taps_.bytes());
  rows_ = g.rows, columns_ = g.columns, depth_ = g.depth;
  direct_conv_ = std::make_unique<DirectConv>(context, c, call, with_relu_y);
  add_choices();
}

ImplicitGemm::~ImplicitGemm() = default;

int64_t ImplicitGemm::blocks_of(const Choice& choice) const {
  const TileExtent& block = (is_matrix_product_ ? kMatrixTiles : kGatheredTiles)[choice.shape];
  return ceil_div(rows_, block.rows) * ceil_div(columns_, block.columns) * c_.groups *
         choice.pieces;
}

void ImplicitGemm::add_choices() {
  const int64_t steps = ceil_div(depth_, kTileDepth);
  for (int shape = 0; shape < kTileShapes && c_.pooled.empty(); ++shape) {
    const TileExtent& block = (is_matrix_product_ ? kMatrixTiles : kGatheredTiles)[shape];
    const int64_t results = block.rows * block.columns, tiles = blocks_of({shape});
    if (is_matrix_product_ && results > 64 * 64 && shared_limit_ < (160 << 10)) continue;
    choices_.push_back({shape, 1, 1});
    const auto add = [&](int64_t pieces) {
      int cluster = clusters_ ? 8 : 1;
      while (cluster > pieces) cluster /= 2;
      if (pieces <= 1) return;
      pieces -= pieces % cluster;
      const int64_t outer = pieces / cluster;
      if (outer > 1 &&
          (tiles * cluster > Gpu::kCounters || tiles * outer * results > Gpu::kPartialSums))
        return;
      if (pieces > choices_.back().pieces)
        choices_.push_back({shape, static_cast<int>(pieces), cluster});
    };
    // One cluster per tile, so that no sums go through global memory.
    for (int64_t pieces : {2, 4, 8}) {
      if (is_matrix_product_ && pieces <= steps && tiles * pieces <= 8 * processors_) add(pieces);
    }
    for (int64_t each : {1, 2, 4, 8})
      add(std::min(each * kTypicalMultiprocessors / tiles, steps / 2));
  }
  for (size_t direct = 0; direct < direct_conv_->choices().size(); ++direct)
    choices_.push_back({0, 1, 1, static_cast<int>(direct)});
}

ImplicitGemm::Choice ImplicitGemm::untimed() const {
  Choice best = choices_.front();
  double minimum = 1e30;
  for (const Choice& choice : choices_) {
    if (choice.direct >= 0) continue;
    const double blocks = static_cast<double>(blocks_of(choice));
    if (!is_matrix_product_) {  // the largest tiles whose blocks fill the card
      if (blocks >= kTypicalMultiprocessors) best = choice;
      continue;
    }
    // Estimate of what a multiprocessor loads, in elements along the reduction, plus a cost for
    // clusters.
    const TileExtent& block = kMatrixTiles[choice.shape];
    const double cost = std::max(1.0, blocks / processors_) *
                            static_cast<double>(ceil_div(depth_, kTileDepth * choice.pieces)) *
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
  if (choice.direct < 0) return cat(choice.shape, "/", choice.pieces, "/", choice.cluster);
  const DirectConv::Choice& direct = direct_conv_->choices()[choice.direct];
  return cat("window ", direct.strip_rows, "/", direct.shape, "/", direct.column_blocks, "/",
             direct.slices);
}

void ImplicitGemm::launch(Context& context, const ImplicitGemmTensors& t,
                          const Choice& choice) const {
  if (choice.direct >= 0)
    return direct_conv_->run(context, t, direct_conv_->choices()[choice.direct]);
  const Gpu& gpu = context.gpu();
  const bool fprop = call_ == ConvCall::fprop, wgrad = call_ == ConvCall::wgrad;
  ImplicitGemmParams n{};
  n.geometry = implicit_gemm_geometry(c_, call_, t.db != nullptr);
  n.split.pieces = choice.pieces;
  n.split.steps_each = ceil_div(ceil_div(n.geometry.depth, kTileDepth), choice.pieces);
  while (1 << n.split.cluster_bits < choice.cluster) ++n.split.cluster_bits;
  n.operands = {.a = fprop ? t.x : t.dy,
                .relu_y = t.y,
                .b = wgrad ? t.x : t.w,
                .bias = fprop ? t.b : nullptr,
                .out = t.out,
                .db = t.db,
                .taps = static_cast<const FilterTap*>(taps_.raw()),
                .accumulate_w = t.accumulate_w,
                .accumulate_b = t.accumulate_b,
                .relu = fprop && c_.relu.on,
                .dropout = t.dropout,
                .dropout_layout = DropoutLayout::of(Shape{c_.y.count()}, t.dropout.samples),
                .factor = fprop ? t.dropout.factor : t.gradient_factor,
                .partial_sums = gpu.partial_sums,
                .counters = gpu.counters};
  if (!is_matrix_product_) return launch_gathered_gemm(gpu, n, call_, c_.dtype, choice.shape);
  launch_matrix_gemm(gpu, n, {shared_limit_, processors_}, call_, c_.dtype, choice.shape);
}

void ImplicitGemm::run(Context& context, const ImplicitGemmTensors& tensors) const {
  launch(context, tensors, choice_);
}

bool ImplicitGemm::adds() const { return choice_.direct >= 0 && direct_conv_->adds(); }

std::string ImplicitGemm::key() const {
  const ImplicitGemmGeometry g = implicit_gemm_geometry(c_, call_);
  return cat("implicit_gemm ", static_cast<int>(call_), with_relu_y_ ? " sign " : " ",
             name_of(c_.dtype), " ", rows_, "x", columns_, "x", depth_, " groups ", g.groups,
             " image ", g.height, "x", g.width, "x", g.channels, " positions ", g.by_plane.value,
             " by ", g.by_row.value, " kernel ", g.kernel_width, " start ", g.start[0], ",",
             g.start[1], " step ", g.step[0], ",", g.step[1], " stride ", g.by_stride[0].value, ",",
             g.by_stride[1].value, " tap ", g.tap[0], ",", g.tap[1], " vectors ", g.a_vector, ",",
             g.b_vector, c_.pooled.empty() ? "" : " pooled", is_matrix_product_ ? " plain" : "",
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
    const double milliseconds =
        tuning.time_repeated(context, [&] { launch(context, scratch, choice); });
    if (milliseconds < best) {
      best = milliseconds;
      choice_ = choice;
    }
  }
  take(tuning.remember(key(), text_of(choice_)));
}

}  // namespace crema
