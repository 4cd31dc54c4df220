// The kernels of implicit_gemm.h for plain matrices: fully connected layers and 1x1 convolutions.
// With few rows such a product is bound by latency, so a block issues the loads of all its tiles at
// once and waits for them in few steps.
#include "base/ceil_div.h"
#include "kernels/conv/implicit_gemm/implicit_gemm_kernel.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

template <int kShape, int kWarpsM, int kWarpsN, int kWarpsK = 1>
using MatrixShape = TileShape<kMatrixTiles[kShape].rows, kMatrixTiles[kShape].columns, kWarpsM,
                              kWarpsN, kWarpsK, true>;

template <typename Body>
void with_shape(int shape, const Body& body) {
  switch (shape) {
    case 0:
      return body.template operator()<MatrixShape<0, 2, 2, 2>>();
    case 1:
      return body.template operator()<MatrixShape<1, 4, 2>>();
    case 2:
      return body.template operator()<MatrixShape<2, 2, 4, 2>>();
    case 3:
      return body.template operator()<MatrixShape<3, 4, 2>>();
    default:
      return body.template operator()<MatrixShape<4, 4, 2>>();
  }
}

}  // namespace

void launch_matrix_gemm(const Gpu& gpu, const ImplicitGemmParams& given,
                        const ImplicitGemmLimits& limits, ConvCall call, DType dtype, int shape) {
  ImplicitGemmParams n = given;
  const ImplicitGemmGeometry& g = n.geometry;
  const int pieces = n.split.pieces, steps_each = n.split.steps_each;
  with_shape(shape, [&]<typename Shape>() {
    with_call(call, n.operands.relu_y, dtype, [&]<typename T, ConvCall kCall, bool kReluMask>() {
      constexpr int kStep = SharedLayout<Shape, kCall, kReluMask>::stage,
                    kAhead = kGatherStages - 1;
      const int slots = pieces > 1 || Shape::warps_k > 1 ? kSlotBytes<Shape> : 0;
      const int blocks =
          ceil_div(g.rows, Shape::m) * ceil_div(g.columns, Shape::n) * g.groups * pieces;
      const int room =
          (blocks > limits.processors ? limits.shared_bytes / 2 : limits.shared_bytes) - slots;
      // All loads are in flight before the first wait, as far as shared memory allows.
      n.stages.steps = std::clamp(room / (kGatherStages * kStep), 1, ceil_div(steps_each, kAhead));
      const int stages = ceil_div(steps_each, n.stages.steps);
      n.stages.slots_at = std::min(stages, kGatherStages) * n.stages.steps * kStep;
      launch_implicit_gemm<T, Shape, kCall, kReluMask>(gpu, n, n.stages.slots_at + slots,
                                                       limits.shared_bytes);
    });
  });
}

}  // namespace crema
