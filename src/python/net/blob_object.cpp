#include "python/net/blob_object.h"

namespace crema::python {

namespace py = pybind11;

py::array LoneBlob::data() { return view_of(data_->data(), shape_, data_); }
py::array LoneBlob::diff() { return view_of(diff_->data(), shape_, diff_); }

void LoneBlob::reshape(const Shape& shape) {
  const auto count = static_cast<size_t>(shape.count());
  for (auto* values : {&data_, &diff_}) {
    if (*values && (*values)->size() >= count) continue;
    auto larger = std::make_shared<std::vector<float>>(count);
    if (*values) std::copy((*values)->begin(), (*values)->end(), larger->begin());
    *values = std::move(larger);
  }
  shape_ = shape;
}

}  // namespace crema::python
