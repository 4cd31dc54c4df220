// The choices of implicit_gemm.h, and its kernels for windows.
#include <algorithm>

#include "base/ceil_div.h"
#include "device/multiprocessors.h"
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

ImplicitGemm::ImplicitGemm(Context& context, const ConvCase& c, ConvCall call)
    : c_(c), call_(call), is_matrix_product_(is_matrix_product(c)) {
  require(!c.dropout || c.groups == 1, "implicit GEMM with groups and a dropout");
  const GpuCard& card = context.gpu().card;
  clusters_ = card.has_clusters();
  processors_ = card.multiprocessors;
  // Half of it, and static variables, fit twice on a multiprocessor.
  shared_limit_ = card.shared_bytes - 2 * GpuCard::kReservedShared;
  const ImplicitGemmGeometry g = implicit_gemm_geometry(c, call, /*bias_column=*/true);
  if (!is_matrix_product_) {
    const std::vector<FilterTap> taps = filter_taps(c, call);
    taps_ = Tensor(context, {static_cast<int64_t>(taps.size() * sizeof(FilterTap))}, DType::u8);
    copy_bytes(context, taps_.raw(), Device::gpu, taps.data(), Device::cpu, taps_.bytes());
  }
  rows_ = g.rows, columns_ = g.columns, depth_ = g.depth;
  add_choices();
  take(untimed());
}

int64_t ImplicitGemm::blocks_of(const Choice& choice) const {
  const TileExtent& block = (is_matrix_product_ ? kMatrixTiles : kGatheredTiles)[choice.shape];
  return ceil_div(rows_, block.rows) * ceil_div(columns_, block.columns) * c_.groups *
         choice.pieces;
}

void ImplicitGemm::add_choices() {
  const int64_t steps = ceil_div(depth_, kTileDepth);
  for (int shape = 0; shape < kTileShapes; ++shape) {
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
}

size_t ImplicitGemm::untimed() const {
  size_t best = 0;
  double minimum = 1e30;
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    const double blocks = static_cast<double>(blocks_of(choice));
    if (!is_matrix_product_) {  // the largest tiles whose blocks fill the card
      if (blocks >= kTypicalMultiprocessors) best = i;
      continue;
    }
    // Estimate of what a multiprocessor loads, in elements along the reduction, plus a cost for
    // clusters.
    const TileExtent& block = kMatrixTiles[choice.shape];
    const double cost = std::max(1.0, blocks / processors_) *
                            static_cast<double>(ceil_div(depth_, kTileDepth * choice.pieces)) *
                            (block.rows + block.columns) +
                        (choice.pieces > 1 ? 64 : 0) + (choice.pieces > choice.cluster ? 256 : 0);
    if (cost < minimum) minimum = cost, best = i;
  }
  return best;
}

std::string ImplicitGemm::choice_name(size_t choice) const {
  const Choice& one = choices_[choice];
  return cat(one.shape, "/", one.pieces, "/", one.cluster);
}

void ImplicitGemm::launch(Context& context, const ProductTensors& t, size_t index) const {
  const Choice& choice = choices_[index];
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
                .added = fprop ? t.added : nullptr,
                .out = t.out,
                .db = t.db,
                .taps = static_cast<const FilterTap*>(taps_.raw()),
                .accumulate_w = t.accumulate_w,
                .accumulate_b = t.accumulate_b,
                .relu = fprop && (t.added ? c_.sum_relu.on : c_.relu.on),
                .dropout = t.dropout,
                .dropout_layout = DropoutLayout::of(Shape{c_.y.count()}, t.dropout.samples),
                .factor = fprop ? t.dropout.factor : t.gradient_factor,
                .partial_sums = gpu.partial_sums,
                .counters = gpu.counters};
  if (!is_matrix_product_) return launch_gathered_gemm(gpu, n, call_, c_.dtype, choice.shape);
  launch_matrix_gemm(gpu, n, {shared_limit_, processors_}, call_, c_.dtype, choice.shape);
}

}  // namespace crema
