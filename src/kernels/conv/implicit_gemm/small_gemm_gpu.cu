// The kernels of implicit_gemm.h for plain matrices: fully connected layers and 1x1 convolutions.
// With few rows such a product is bound by latency, so a block issues the loads of all its tiles at
// once and waits for them in few steps.
#include "kernels/conv/implicit_gemm/implicit_gemm_kernel.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

template <int kShape, int kWarpsM, int kWarpsN, int kWarpsK = 1>
using PlainShape = TileShape<kMatrixTiles[kShape].rows, kMatrixTiles[kShape].columns, kWarpsM,
                             kWarpsN, kWarpsK, true>;

template <typename Body>
void with_shape(int shape, const Body& body) {
  switch (shape) {
    case 0:
      return body.template operator()<PlainShape<0, 2, 2, 2>>();
    case 1:
      return body.template operator()<PlainShape<1, 4, 2>>();
    case 2:
      return body.template operator()<PlainShape<2, 2, 4, 2>>();
    case 3:
      return body.template operator()<PlainShape<3, 4, 2>>();
    default:
      return body.template operator()<PlainShape<4, 4, 2>>();
  }
}

}  // namespace

void launch_matrix_gemm(const Gpu& gpu, const ImplicitGemmParams& given, ConvOperator op,
                        DType dtype, int shape) {
  ImplicitGemmParams n = given;
  with_shape(shape, [&]<typename Shape>() {
    with_op(op, n.sign, dtype, [&]<typename T, ConvOperator kOp, bool kSign>() {
      constexpr int kStep = SharedLayout<Shape, kOp, kSign>::stage, kAhead = kGatherStages - 1;
      const int slots = n.pieces > 1 || Shape::warps_k > 1 ? kSlotBytes<Shape> : 0;
      const int blocks = (n.rows + Shape::m - 1) / Shape::m *
                         ((n.columns + Shape::n - 1) / Shape::n) * n.groups * n.pieces;
      const int room = (blocks > n.at_once ? n.room / 2 : n.room) - slots;
      // All loads are in flight before the first wait, as far as shared memory allows.
      n.stage_steps =
          std::clamp(room / (kGatherStages * kStep), 1, (n.steps_each + kAhead - 1) / kAhead);
      const int stages = (n.steps_each + n.stage_steps - 1) / n.stage_steps;
      n.slots_at = std::min(stages, kGatherStages) * n.stage_steps * kStep;
      launch_implicit_gemm<T, Shape, kOp, kSign>(gpu, n, n.slots_at + slots, n.room);
    });
  });
}

}  // namespace crema
