// BlobObject: what stands behind a Python Blob: a blob of a net, a parameter, a blob alone, and the
// blobs that a Python layer is called with. data() and diff() are arrays that may be kept: they hold
// the memory that they show.
#pragma once

#include <pybind11/numpy.h>

#include <string>

#include "python/array_view.h"
#include "tensor/tensor.h"

namespace crema::python {

class BlobObject {
 public:
  virtual ~BlobObject() = default;
  virtual Shape shape() = 0;
  virtual pybind11::array data() = 0;
  virtual pybind11::array diff() = 0;
  // Error where a blob has the shape that its layer gives it.
  virtual void reshape(const Shape& shape) = 0;
  // Where data or diff lie on a GPU, as DLPack and CuPy want it; empty: they do not, or not row-major
  // in float32.
  virtual Tensor gpu_tensor(bool /*diff*/) { return {}; }
  virtual int gpu_ordinal() { return 0; }
  // "conv1"; "": it has none.
  virtual std::string name() { return ""; }
};

// A blob of its own in the CPU's memory. Arrays taken before a reshape() to more values keep the
// memory that they show; the blob goes on in new memory.
class LoneBlob : public BlobObject {
 public:
  explicit LoneBlob(const Shape& shape) { reshape(shape); }
  Shape shape() override { return shape_; }
  pybind11::array data() override;
  pybind11::array diff() override;
  void reshape(const Shape& shape) override;
  float* values() { return data_->data(); }
  float* diffs() { return diff_->data(); }

 private:
  Shape shape_;
  std::shared_ptr<std::vector<float>> data_, diff_;
};

}  // namespace crema::python
