#include "python/net/array_view.h"

#include <cstring>

#include "base/error.h"
#include "tensor/shape_limits.h"

namespace crema::python {

namespace py = pybind11;

namespace {

py::array array_over(float* values, const Shape& shape, std::shared_ptr<const void> owner) {
  using Owner = std::shared_ptr<const void>;
  const py::capsule base(new Owner(std::move(owner)),
                         [](void* held) { delete static_cast<Owner*>(held); });
  std::vector<py::ssize_t> strides(shape.axes());
  py::ssize_t stride = sizeof(float);
  for (int axis = shape.axes() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= static_cast<py::ssize_t>(shape[axis]);
  }
  return py::array_t<float>(shape.dims(), std::move(strides), values, base);
}

}  // namespace

bool is_plain(const Tensor& tensor) {
  return tensor.device() == Device::cpu && tensor.dtype() == DType::f32 &&
         (tensor.format().order == Order::row_major ||
          same_layout(tensor.format(), Format::row_major(), tensor.shape()));
}

py::array view_of(const Tensor& tensor) {
  return array_over(tensor.data<float>(), tensor.shape(), tensor.memory());
}

py::array view_of(float* values, const Shape& shape, std::shared_ptr<const void> owner) {
  return array_over(values, shape, std::move(owner));
}

py::array_t<float, py::array::c_style> floats_of(const py::handle& values) {
  auto array = py::array::ensure(values);
  if (!array) throw py::error_already_set();
  const char kind = array.dtype().kind();
  if (std::strchr("fiub", kind) == nullptr || kind == '\0')
    throw py::type_error(cat("expected numbers, but the array has the dtype ",
                             py::str(array.dtype()).cast<std::string>()));
  return py::array_t<float, py::array::c_style | py::array::forcecast>(array);
}

Shape shape_of(const py::handle& extents) {
  std::vector<int64_t> dims;
  for (const py::handle& extent : py::iter(extents)) {
    // As NumPy's integers are, too; not 2.5.
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(extent.ptr()));
    if (!number) throw py::error_already_set();
    int overflow = 0;
    dims.push_back(PyLong_AsLongLongAndOverflow(number.ptr(), &overflow));
    require(overflow == 0, "shape: extent ", std::string(py::str(number)), " is not in 64 bits");
    require(dims.back() >= 0, "shape: extent ", dims.back(), " is negative");
  }
  Shape shape(std::move(dims));
  require(shape.axes() <= kMaxBlobAxes, "shape: ", shape.axes(),
          " axes, but a blob can have at most ", kMaxBlobAxes);
  require(at_most(shape, kMaxValues), "shape: ", shape.brief(), " is more than 2^48 values");
  return shape;
}

py::tuple tuple_of(const Shape& shape) {
  py::tuple extents(shape.axes());
  for (int axis = 0; axis < shape.axes(); ++axis) extents[axis] = py::int_(shape[axis]);
  return extents;
}

py::array Mirror::read(Context& context, const Tensor& tensor) {
  write_back(context, tensor);
  seen_ = to_floats(context, tensor);
  if (!values_ || values_->size() != seen_.size()) {
    values_ = std::make_shared<std::vector<float>>(seen_);
  } else {
    std::copy(seen_.begin(), seen_.end(), values_->begin());
  }
  return view_of(values_->data(), tensor.shape(), values_);
}

py::array Mirror::view(const Shape& shape) const {
  return view_of(values_->data(), shape, values_);
}

// Bits, because no NaN equals itself.
bool Mirror::changed() const {
  return values_ && std::memcmp(values_->data(), seen_.data(), seen_.size() * sizeof(float)) != 0;
}

bool Mirror::write_back(Context& context, const Tensor& tensor, std::vector<float>* before) {
  if (!changed() || values_->size() != static_cast<size_t>(tensor.count())) return false;
  from_floats(context, values_->data(), tensor);
  if (before) *before = std::move(seen_);
  seen_ = *values_;
  return true;
}

}  // namespace crema::python
