// NumPy arrays over tensors.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace crema::python {

// Whether NumPy can access the tensor directly: in the CPU's memory, in float32, row-major.
bool is_plain(const Tensor& tensor);

// An array over the memory of a plain tensor, without a copy. It keeps that memory alive.
pybind11::array view_of(const Tensor& tensor);
// The same over values elsewhere; `owner` lives as long as the array.
pybind11::array view_of(float* values, const Shape& shape, std::shared_ptr<const void> owner);

// Any number, list or array as a contiguous float32 array, copied only if it has to be. TypeError for
// what does not consist of numbers.
pybind11::array_t<float, pybind11::array::c_style> floats_of(const pybind11::handle& values);

// A tuple, list or other sequence of extents. Error for a negative one.
Shape shape_of(const pybind11::handle& extents);
pybind11::tuple tuple_of(const Shape& shape);

// A tensor's values in host memory, for tensors that are not plain. The memory stays the same while
// the number of values does, so that an array over it shows new values after the next read().
class Mirror {
 public:
  // Writes back the program's changes, then reads the tensor.
  pybind11::array read(Context& context, const Tensor& tensor);
  // The values of the last read().
  pybind11::array view(const Shape& shape) const;
  // Writes the program's changes since read() to the tensor. True if there were any; `before` is
  // what was read.
  bool write_back(Context& context, const Tensor& tensor, std::vector<float>* before = nullptr);
  bool changed() const;
  int64_t count() const { return static_cast<int64_t>(seen_.size()); }
  // Whether no array uses it any more.
  bool unseen() const { return values_.use_count() <= 1; }

 private:
  std::shared_ptr<std::vector<float>> values_;
  std::vector<float> seen_;  // as they were read
};

}  // namespace crema::python
