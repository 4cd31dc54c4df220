// The only dispatch from a runtime dtype to a C++ type. Kernels are templates; all code above them
// passes tensors.
#pragma once

#include "base/error.h"
#include "tensor/tensor.h"

namespace crema {

// on(x, [&]<typename T>() { ... }): calls the lambda with T = float or double, the dtype of x.
// parallel_for (one body for both devices) or the context inside a kernel with two bodies chooses
// the device.
template <typename Body>
decltype(auto) on(const Tensor& tensor, Body&& body) {
  switch (tensor.dtype()) {
    case DType::f32:
      return body.template operator()<float>();
    case DType::f64:
      return body.template operator()<double>();
    default:
      fail("a kernel for real numbers was given a tensor of ", name_of(tensor.dtype()));
  }
}

// The same, but T may also be Half or BFloat16, which compute in Compute<T>: for kernels that also
// run on a GPU. CPUs compute in float and double only.
template <typename Body>
decltype(auto) on_real(const Tensor& tensor, Body&& body) {
  switch (tensor.dtype()) {
    case DType::f16:
      return body.template operator()<Half>();
    case DType::bf16:
      return body.template operator()<BFloat16>();
    default:
      return on(tensor, body);
  }
}

// The same for kernels on tensor cores, with T = Half or BFloat16.
template <typename Body>
decltype(auto) on_half(DType dtype, Body&& body) {
  if (dtype == DType::f16) return body.template operator()<Half>();
  return body.template operator()<BFloat16>();
}

}  // namespace crema
