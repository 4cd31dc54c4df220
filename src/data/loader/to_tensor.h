// Copies host values into a tensor of any dtype and device.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace crema {

inline void to_tensor(Context& context, const std::vector<float>& values, const Tensor& tensor) {
  if (tensor.dtype() == DType::f32) {
    copy(context, Tensor::wrap(const_cast<float*>(values.data()), tensor.shape(), DType::f32),
         tensor);
  } else {
    from_floats(context, values.data(), tensor);
  }
}

}  // namespace crema
