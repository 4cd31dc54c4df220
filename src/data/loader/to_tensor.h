// Copies host values into a tensor of any dtype and device.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "tensor/tensor.h"

namespace crema {

// On all threads that compute: the values are in the cache of the core that made them, and each
// core will read its share of them next.
inline void copy_in_pieces(const char* from, char* to, int64_t bytes) {
  constexpr int64_t kPiece = 1 << 15;
  const int64_t pieces = (bytes + kPiece - 1) / kPiece;
#pragma omp parallel for schedule(static) if (pieces > 4)
  for (int64_t i = 0; i < pieces; ++i)
    std::memcpy(to + i * kPiece, from + i * kPiece, std::min(kPiece, bytes - i * kPiece));
}

inline void to_tensor(Context& context, const std::vector<float>& values, const Tensor& tensor) {
  if (tensor.dtype() != DType::f32) {
    from_floats(context, values.data(), tensor);
  } else if (tensor.device() == Device::cpu) {
    copy_in_pieces(reinterpret_cast<const char*>(values.data()), static_cast<char*>(tensor.raw()),
                   static_cast<int64_t>(tensor.bytes()));
  } else {
    copy(context, Tensor::wrap(const_cast<float*>(values.data()), tensor.shape(), DType::f32),
         tensor);
  }
}

}  // namespace crema
