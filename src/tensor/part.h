// Views of parts of a tensor's memory as smaller tensors.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// A tensor in the memory of another, such as a workspace, `at` bytes from its first element.
inline Tensor part_of(const Tensor& whole, size_t at, Shape shape, DType dtype,
                      Format format = {}) {
  char* const start = whole.data<char>() + at;
  if (!whole.memory()) return Tensor::wrap(start, std::move(shape), dtype, std::move(format));
  const auto before = static_cast<size_t>(start - static_cast<char*>(whole.memory()->data()));
  return Tensor(whole.memory(), before, std::move(shape), dtype, std::move(format));
}

// The elements in memory from element `first` on, in the tensor's format.
inline Tensor part(const Tensor& tensor, Shape shape, int64_t first = 0) {
  return part_of(tensor, static_cast<size_t>(first) * size_of(tensor.dtype()), std::move(shape),
                 tensor.dtype(), tensor.format());
}

}  // namespace crema
