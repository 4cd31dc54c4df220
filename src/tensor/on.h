// The one dispatch point from a value (dtype) to a type. Kernels are templates; everything above
// passes tensors.
#pragma once

#include "base/error.h"
#include "tensor/tensor.h"

namespace crema {

// on(x, [&]<typename T>() { ... }): runs the lambda with T = float or double, the dtype of x. The
// device is chosen by parallel_for (one body for both) or by the context inside a kernel with two
// bodies.
template <typename Body>
decltype(auto) on(const Tensor& tensor, Body&& body) {
  switch (tensor.dtype()) {
    case DType::f32:
      return body.template operator()<float>();
    case DType::f64:
      return body.template operator()<double>();
    default:
      fail("a kernel for real numbers met a tensor of ", name_of(tensor.dtype()));
  }
}

// The same with T also Half and BFloat16, whose arithmetic is that of Compute<T>: for kernels that
// run on a GPU too. CPUs compute in float and double only.
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

}  // namespace crema
