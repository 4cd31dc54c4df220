// The choices of implicit_gemm.h, and its kernels for windows.
#include <algorithm>

#include "kernels/conv/implicit_gemm/direct_conv.h"
#include "kernels/conv/implicit_gemm/implicit_gemm_kernel.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

template <int kShape, int kWarpsM, int kWarpsN>
using Gathered =
    GatherShape<kGatheredResults[kShape].rows, kGatheredResults[kShape].columns, kWarpsM, kWarpsN>;

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

void start_gathered(const Gpu& gpu, const GatherNumbers& n, GatherRole role, DType dtype,
                    int shape) {
  with_shape(shape, [&]<typename Shape>() {
    with_role(role, n.sign, dtype, [&]<typename T, GatherRole kRole, bool kSign>() {
      constexpr int kBytes = GatherLayout<Shape, kRole, kSign>::bytes;
      static_assert(kSlotBytes<Shape> <= kBytes);
      launch_gather_product<T, Shape, kRole, kSign>(gpu, n, kBytes, kBytes);
    });
  });
}

GatherProduct::GatherProduct(Context& context, const ConvCase& c, GatherRole role, bool with_sign)
    : c_(c), role_(role), with_sign_(with_sign), plain_(plain_matrices(c)) {
  const auto ask = [&](cudaDeviceAttr what) {
    int value = 0;
    check_cuda(cudaDeviceGetAttribute(&value, what, context.ordinal()), "asking for the device");
    return value;
  };
  clusters_ = has_clusters(context);
  processors_ = ask(cudaDevAttrMultiProcessorCount);
  room_ = ask(cudaDevAttrMaxSharedMemoryPerBlockOptin) - 2048;  // the card takes some itself
  const GatherNumbers n = gather_numbers(c, role);
  const std::vector<GatherTap> taps = gather_taps(c, role);
  taps_ = Tensor(context, {static_cast<int64_t>(taps.size() * sizeof(GatherTap))}, DType::u8);
  copy_bytes(context, taps_.raw(), Device::gpu, taps.data(), Device::cpu, taps_.bytes());
  rows_ = n.rows;
  columns_ = n.columns + (role == GatherRole::weights);  // the bias's
  depth_ = n.depth;
  windows_ = std::make_unique<WindowProduct>(context, c, role, with_sign);
  add_choices();
}

GatherProduct::~GatherProduct() = default;

int64_t GatherProduct::blocks_of(const Choice& choice) const {
  const GatherResults& block = (plain_ ? kPlainResults : kGatheredResults)[choice.shape];
  return over(rows_, block.rows) * over(columns_, block.columns) * c_.groups * choice.pieces;
}

void GatherProduct::add_choices() {
  const int64_t steps = over(depth_, kGatherDepth);
  for (int shape = 0; shape < kGatherShapes && c_.pooled.empty(); ++shape) {
    const GatherResults& block = (plain_ ? kPlainResults : kGatheredResults)[shape];
    const int64_t results = block.rows * block.columns, tiles = blocks_of({shape});
    if (plain_ && results > 64 * 64 && room_ < (160 << 10)) continue;
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
    // One cluster for a tile, so that no sums go through global memory.
    for (int64_t pieces : {2, 4, 8}) {
      if (plain_ && pieces <= steps && tiles * pieces <= 8 * processors_) add(pieces);
    }
    for (int64_t blocks : {132, 264, 528, 1056}) add(std::min(blocks / tiles, steps / 2));
  }
  for (size_t window = 0; window < windows_->choices().size(); ++window)
    choices_.push_back({0, 1, 1, static_cast<int>(window)});
}

GatherProduct::Choice GatherProduct::untimed() const {
  Choice best = choices_.front();
  double least = 1e30;
  for (const Choice& choice : choices_) {
    if (choice.window >= 0) continue;
    const double blocks = static_cast<double>(blocks_of(choice));
    if (!plain_) {  // the blocks that fill the card, as large as they may be then
      if (blocks >= 132) best = choice;
      continue;
    }
    // What a multiprocessor loads, in numbers along the summed axis, with something for clusters.
    const GatherResults& block = kPlainResults[choice.shape];
    const double cost = std::max(1.0, blocks / processors_) *
                            static_cast<double>(over(depth_, kGatherDepth * choice.pieces)) *
                            (block.rows + block.columns) +
                        (choice.pieces > 1 ? 64 : 0) + (choice.pieces > choice.cluster ? 256 : 0);
    if (cost < least) {
      least = cost;
      best = choice;
    }
  }
  return best;
}

std::string GatherProduct::text_of(const Choice& choice) const {
  if (choice.window < 0) return cat(choice.shape, "/", choice.pieces, "/", choice.cluster);
  const WindowProduct::Choice& window = windows_->choices()[choice.window];
  return cat("window ", window.strip, "/", window.shape, "/", window.parts, "/", window.slices);
}

void GatherProduct::launch(Context& context, const GatherTensors& t, const Choice& choice) const {
  if (choice.window >= 0) return windows_->run(context, t, windows_->choices()[choice.window]);
  const Gpu& gpu = context.gpu();
  GatherNumbers n = gather_numbers(c_, role_);
  n.pieces = choice.pieces;
  n.steps_each = static_cast<int>(over(over(n.depth, kGatherDepth), choice.pieces));
  while (1 << n.cluster_bits < choice.cluster) ++n.cluster_bits;
  n.room = room_;
  n.at_once = processors_;
  n.taps = static_cast<const GatherTap*>(taps_.raw());
  n.parts = gpu.parts;
  n.counters = gpu.counters;
  n.a = role_ == GatherRole::forward ? t.x : t.dy;
  n.b = role_ == GatherRole::weights ? t.x : t.w;
  n.sign = t.y;
  n.bias = role_ == GatherRole::forward ? t.b : nullptr;
  n.out = t.out;
  n.relu = role_ == GatherRole::forward && c_.relu;
  n.db = t.db;
  n.accumulate_w = t.accumulate_w;
  n.accumulate_b = t.accumulate_b;
  n.dropout = t.dropout;
  n.draws = DropoutDraws::of(Shape{c_.y.count()});
  if (n.db) ++n.columns;
  if (plain_) return start_plain(gpu, n, role_, c_.dtype, choice.shape);
  start_gathered(gpu, n, role_, c_.dtype, choice.shape);
}

void GatherProduct::run(Context& context, const GatherTensors& tensors) const {
  launch(context, tensors, choice_);
}

bool GatherProduct::adds() const { return choice_.window >= 0 && windows_->adds(); }

std::string GatherProduct::key() const {
  const GatherNumbers n = gather_numbers(c_, role_);
  return cat("gather ", static_cast<int>(role_), with_sign_ ? " sign " : " ", name_of(c_.dtype),
             " ", rows_, "x", columns_, "x", depth_, " groups ", n.groups, " image ", n.height, "x",
             n.width, "x", n.channels, " places ", n.by_plane.divisor, " by ", n.by_row.divisor,
             " kernel ", n.kernel_width, " start ", n.start[0], ",", n.start[1], " step ",
             n.step[0], ",", n.step[1], " stride ", n.by_stride[0].divisor, ",",
             n.by_stride[1].divisor, " tap ", n.tap[0], ",", n.tap[1], " vectors ", n.a_vector, ",",
             n.b_vector, c_.pooled.empty() ? "" : " pooled", plain_ ? " plain" : "",
             windows_->adds() ? " adds" : "");
}

void GatherProduct::tune(Context& context, const GatherTensors& scratch) {
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
