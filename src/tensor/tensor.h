// Tensor: a typed, shaped view of device memory. Copying a Tensor copies the view; the memory is
// shared.
#pragma once

#include <memory>
#include <vector>

#include "device/memory.h"
#include "tensor/dtype.h"
#include "tensor/format.h"
#include "tensor/shape.h"

namespace crema {

class Tensor {
 public:
  Tensor() = default;  // an empty tensor: "not wanted" in argument lists
  // Allocates zeroed memory on the context's device.
  Tensor(Context& context, Shape shape, DType dtype = DType::f32, Format format = {});
  // A view of existing memory, `offset` bytes from its start.
  Tensor(std::shared_ptr<Buffer> memory, size_t offset, Shape shape, DType dtype,
         Format format = {});
  // A view of the caller's CPU memory, which must outlive the tensor.
  static Tensor wrap(void* data, Shape shape, DType dtype, Format format = {});

  explicit operator bool() const { return data_ != nullptr || (memory_ && count() == 0); }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  const Format& format() const { return format_; }
  Device device() const { return device_; }
  int64_t count() const { return shape_.count(); }
  // Elements in memory, padding included: the range of element-wise work on parameters.
  int64_t elements() const { return format_.elements(shape_); }
  size_t bytes() const { return static_cast<size_t>(elements()) * size_of(dtype_); }

  void* raw() const { return data_; }
  template <typename T>
  T* data() const {
    return static_cast<T*>(data_);
  }
  const std::shared_ptr<Buffer>& memory() const { return memory_; }

  // The same memory with another shape of equal count (row-major, or layouts that agree).
  Tensor reshaped(Shape shape, Format format = {}) const;

 private:
  std::shared_ptr<Buffer> memory_;
  void* data_ = nullptr;
  Device device_ = Device::cpu;
  DType dtype_ = DType::f32;
  Format format_;
  Shape shape_;
};

// Dtype, shape and layout must match; the devices may differ.
void copy(Context& context, const Tensor& from, const Tensor& to);
void zero(Context& context, const Tensor& at);

// The contents in row-major order as float or double, from any dtype, format and device; and back.
std::vector<float> to_floats(Context& context, const Tensor& tensor);
std::vector<double> to_doubles(Context& context, const Tensor& tensor);
void from_floats(Context& context, const float* values, const Tensor& tensor);
void from_doubles(Context& context, const double* values, const Tensor& tensor);

}  // namespace crema
