// BlobObject: implements Python's Blob: a blob of a net, a parameter, a standalone blob, and the
// arguments of a Python layer. data() and diff() are arrays that may be kept: they keep their
// memory alive.
#pragma once

#include <pybind11/numpy.h>

#include <string>

#include "python/net/array_view.h"
#include "tensor/tensor.h"

namespace crema::python {

class BlobObject {
 public:
  virtual ~BlobObject() = default;
  virtual Shape shape() = 0;
  virtual pybind11::array data() = 0;
  virtual pybind11::array diff() = 0;
  // Error for a blob whose shape is set by its layer.
  virtual void reshape(const Shape& shape) = 0;
  // The GPU of data or diff, for DLPack and CuPy; empty: not on a GPU, or not row-major float32.
  virtual Tensor gpu_tensor(bool /*diff*/) { return {}; }
  virtual int gpu_ordinal() { return 0; }
  // "conv1"; "": it has none.
  virtual std::string name() { return ""; }
};

// A standalone blob in the CPU's memory. Arrays taken before a reshape() to more values keep their
// old memory; the blob continues in new memory.
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
