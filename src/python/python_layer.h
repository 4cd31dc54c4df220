// Layers written in Python: the base of their classes (crema.Layer), and the objects behind the
// layers of a net.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "layers/python_hook.h"
#include "net/net.h"
#include "python/net/blob_object.h"

namespace crema::python {

// A blob that a Python layer is called with, or its parameter.
class HostBlobObject : public BlobObject {
 public:
  explicit HostBlobObject(std::shared_ptr<HostBlob> blob) : blob_(std::move(blob)) {}
  Shape shape() override { return blob_->shape(); }
  pybind11::array data() override { return view_of(blob_->data()); }
  pybind11::array diff() override { return view_of(blob_->diff()); }
  void reshape(const Shape& shape) override { blob_->reshape(shape); }
  const std::shared_ptr<HostBlob>& blob() const { return blob_; }

 private:
  std::shared_ptr<HostBlob> blob_;
};

// self.blobs of a layer: a sequence of Blob.
struct LayerBlobs {
  std::shared_ptr<Context> host;
  std::vector<std::shared_ptr<HostBlobObject>> all;
};

// crema.Layer.
struct PythonLayerBase {
  std::string param_str, name, type = "Python";
  int phase = 0;  // crema.TRAIN or crema.TEST
  int rank = 0, ranks = 1;
  uint64_t pass_number = 0;
  std::shared_ptr<LayerBlobs> blobs = std::make_shared<LayerBlobs>();
};

// The object behind a node of the net, an instance of the author's class, whose self.blobs then show the
// net's parameters (before the first pass they have what setup gave them); None for a layer that is not
// written in Python. Call with the interpreter's lock held.
pybind11::object python_instance(Net& net, const Node& node);

// Converts an exception inside a Python layer: throws Error with its type, its text and the last
// lines of its traceback. When that Error reaches Python, the exception is its __cause__.
[[noreturn]] void fail_with(pybind11::error_already_set& exception, const std::string& where);

}  // namespace crema::python
