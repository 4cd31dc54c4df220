#include "tensor/tensor.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace crema {

Tensor::Tensor(Context& context, Shape shape, DType dtype, Format format)
    : device_(context.device()),
      dtype_(dtype),
      format_(std::move(format)),
      shape_(std::move(shape)) {
  memory_ = std::make_shared<Buffer>(context, bytes());
  data_ = memory_->data();
}

Tensor::Tensor(std::shared_ptr<Buffer> memory, size_t offset, Shape shape, DType dtype,
               Format format)
    : memory_(std::move(memory)),
      device_(memory_->device()),
      dtype_(dtype),
      format_(std::move(format)),
      shape_(std::move(shape)) {
  assert(offset + bytes() <= memory_->bytes());
  data_ = static_cast<char*>(memory_->data()) + offset;
}

Tensor Tensor::wrap(void* data, Shape shape, DType dtype, Format format) {
  Tensor tensor;
  tensor.data_ = data;
  tensor.dtype_ = dtype;
  tensor.format_ = std::move(format);
  tensor.shape_ = std::move(shape);
  return tensor;
}

Tensor Tensor::reshaped(Shape shape, Format format) const {
  assert(shape.count() == count());
  Tensor view = *this;
  view.shape_ = std::move(shape);
  view.format_ = std::move(format);
  return view;
}

void copy(Context& context, const Tensor& from, const Tensor& to) {
  assert(from.dtype() == to.dtype() && from.bytes() == to.bytes());
  copy_bytes(context, to.raw(), to.device(), from.raw(), from.device(), from.bytes());
}

void zero(Context& context, const Tensor& at) {
  zero_bytes(context, at.raw(), at.device(), at.bytes());
}

namespace {

// Calls visit(row-major index, offset in memory) for every logical element. In every format an offset
// is a sum with one term per axis, so the terms are computed once. Threads share a large tensor.
template <typename Visit>
void for_each_element(const Shape& shape, const Format& format, Visit visit) {
  constexpr int64_t kPiece = int64_t{1} << 16;
  const int64_t count = shape.count();
  if (same_layout(format, Format::row_major(), shape)) {
#pragma omp parallel for schedule(static) firstprivate(visit) if (count > kPiece)
    for (int64_t i = 0; i < count; ++i) visit(i, i);
    return;
  }
  if (count == 0) return;
  const int last = shape.axes() - 1;
  std::vector<int64_t> first(shape.axes(), 0);
  std::vector<std::vector<int64_t>> terms(shape.axes());
  for (int axis = 0; axis <= last; ++axis) {
    for (; first[axis] < shape[axis]; ++first[axis])
      terms[axis].push_back(format.offset(shape, first.data()));
    first[axis] = 0;
  }
  // The last axes together are a row, whose offsets are a table: windows alone would be short ones.
  constexpr int64_t kRow = 64, kLongestRow = 1 << 14;
  int outer = last;
  std::vector<int64_t> row = terms[last];
  while (outer > 0 && std::ssize(row) < kRow && std::ssize(row) * shape[outer - 1] <= kLongestRow) {
    std::vector<int64_t> longer;
    for (const int64_t term : terms[--outer]) {
      for (const int64_t inner : row) longer.push_back(term + inner);
    }
    row = std::move(longer);
  }
  const int64_t length = std::ssize(row), rows = count / length,
                pieces = std::clamp<int64_t>(count / kPiece, 1, rows);
#pragma omp parallel for schedule(static) firstprivate(visit) if (pieces > 1)
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const int64_t begin = rows * piece / pieces, end = rows * (piece + 1) / pieces;
    std::vector<int64_t> index(shape.axes(), 0);
    for (int64_t axis = outer - 1, rest = begin; axis >= 0; --axis) {
      index[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    for (int64_t i = begin * length; i < end * length; i += length) {
      int64_t start = 0;
      for (int axis = 0; axis < outer; ++axis) start += terms[axis][index[axis]];
      for (int64_t j = 0; j < length; ++j) visit(i + j, start + row[j]);
      for (int axis = outer - 1; axis >= 0 && ++index[axis] == shape[axis]; --axis) index[axis] = 0;
    }
  }
}

template <typename Visit>
void with_elements(DType dtype, void* bytes, Visit visit) {
  switch (dtype) {
    case DType::f32:
      return visit(static_cast<float*>(bytes));
    case DType::f64:
      return visit(static_cast<double*>(bytes));
    case DType::i32:
      return visit(static_cast<int32_t*>(bytes));
    case DType::u8:
      return visit(static_cast<uint8_t*>(bytes));
    case DType::f16:
      return visit(static_cast<Half*>(bytes));
    case DType::bf16:
      return visit(static_cast<BFloat16*>(bytes));
  }
}

// 16-bit types convert through float.
template <typename To, typename From>
To number(From value) {
  return static_cast<To>(static_cast<Compute<To>>(static_cast<Compute<From>>(value)));
}

template <typename T>
bool holds_as_they_are(const Tensor& tensor) {
  const DType dtype = std::is_same_v<T, float> ? DType::f32 : DType::f64;
  return tensor.dtype() == dtype &&
         same_layout(tensor.format(), Format::row_major(), tensor.shape());
}

template <typename Out>
std::vector<Out> read(Context& context, const Tensor& tensor) {
  std::vector<Out> values(tensor.count());
  if (holds_as_they_are<Out>(tensor)) {
    copy_bytes(context, values.data(), Device::cpu, tensor.raw(), tensor.device(), tensor.bytes());
    return values;
  }
  std::unique_ptr<char[]> bytes;
  void* values_in_format = tensor.raw();
  if (tensor.device() != Device::cpu) {
    bytes = std::make_unique_for_overwrite<char[]>(tensor.bytes());
    values_in_format = bytes.get();
    copy_bytes(context, bytes.get(), Device::cpu, tensor.raw(), tensor.device(), tensor.bytes());
  }
  with_elements(tensor.dtype(), values_in_format, [&](const auto* from) {
    for_each_element(tensor.shape(), tensor.format(),
                     [&](int64_t plain, int64_t at) { values[plain] = number<Out>(from[at]); });
  });
  return values;
}

template <typename In>
void write(Context& context, const In* values, const Tensor& tensor) {
  if (holds_as_they_are<In>(tensor)) {
    copy_bytes(context, tensor.raw(), tensor.device(), values, Device::cpu, tensor.bytes());
    return;
  }
  std::vector<char> bytes;
  void* values_in_format = tensor.raw();
  if (tensor.device() != Device::cpu) {
    bytes.resize(tensor.bytes());
    values_in_format = bytes.data();
  } else if (tensor.format().elements(tensor.shape()) > tensor.count()) {
    zero(context, tensor);  // the padding
  }
  with_elements(tensor.dtype(), values_in_format, [&](auto* to) {
    using To = std::remove_reference_t<decltype(*to)>;
    for_each_element(tensor.shape(), tensor.format(),
                     [&](int64_t plain, int64_t at) { to[at] = number<To>(values[plain]); });
  });
  if (tensor.device() != Device::cpu)
    copy_bytes(context, tensor.raw(), tensor.device(), bytes.data(), Device::cpu, bytes.size());
}

}  // namespace

std::vector<float> to_floats(Context& context, const Tensor& tensor) {
  return read<float>(context, tensor);
}
std::vector<double> to_doubles(Context& context, const Tensor& tensor) {
  return read<double>(context, tensor);
}
void from_floats(Context& context, const float* values, const Tensor& tensor) {
  write(context, values, tensor);
}
void from_doubles(Context& context, const double* values, const Tensor& tensor) {
  write(context, values, tensor);
}

}  // namespace crema
