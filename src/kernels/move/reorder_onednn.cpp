// Reordering of blocked float32 tensors on the CPU by oneDNN.
#include "base/system.h"
#include "kernels/core/onednn.h"
#include "kernels/move/reorder_kernels.h"

namespace crema {
namespace {

Refusal reorder_onednn(Context&, const Tensor& from, const Tensor& to) {
  if (from.format().order != Order::blocked && to.format().order != Order::blocked)
    return "for blocked formats only";
  if (from.dtype() != DType::f32) return "for float32 only";
  if (from.shape().axes() > DNNL_MAX_NDIMS) return "too many axes";
  if (!may_generate_code() || !has_room_for_code(kCodeOfConvolution))
    return "no code may be generated here";
  if (!onednn::too_large_weights(from.shape()).empty()) return "too large weights";
  try {
    onednn::Engine on;
    const onednn::Desc source = onednn::describe(from.shape(), from.dtype(), from.format());
    const onednn::Desc destination = onednn::describe(to.shape(), to.dtype(), to.format());
    if (source.is_zero() || destination.is_zero()) return "a format that it does not know";
    onednn::reorder_call(on, source, destination)
        .run(on, {{DNNL_ARG_FROM, from.raw()}, {DNNL_ARG_TO, to.raw()}});
    return nullptr;
  } catch (const dnnl::error&) {
    return "it has no kernel for these formats";
  }
}

REGISTER_KERNEL(reorder_kernels, "onednn", RunsOn::cpu, 10, reorder_onednn);

}  // namespace

}  // namespace crema
