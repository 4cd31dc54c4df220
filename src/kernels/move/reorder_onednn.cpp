// Reordering of blocked float32 tensors on the CPU by oneDNN.
#include "base/executable_memory.h"
#include "kernels/core/onednn.h"
#include "kernels/move/reorder_bodies.h"

namespace crema {

bool reorder_onednn(const Tensor& from, const Tensor& to) {
  if (from.dtype() != DType::f32 || from.shape().axes() > DNNL_MAX_NDIMS) return false;
  if (!may_generate_code() || !has_room_for_code(kCodeOfConvolution)) return false;
  if (!onednn::too_large_weights(from.shape()).empty()) return false;
  try {
    onednn::Engine on;
    const onednn::Desc source = onednn::describe(from.shape(), from.dtype(), from.format());
    const onednn::Desc destination = onednn::describe(to.shape(), to.dtype(), to.format());
    if (source.is_zero() || destination.is_zero()) return false;
    onednn::reorder_call(on, source, destination)
        .run(on, {{DNNL_ARG_FROM, from.raw()}, {DNNL_ARG_TO, to.raw()}});
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

}  // namespace crema
