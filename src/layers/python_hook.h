// The interface of Python layers to an interpreter. This floor knows nothing of Python: the Python
// module when imported, or a tool that starts an interpreter, registers here how to create objects
// of such classes.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/registry.h"
#include "device/context.h"
#include "tensor/tensor.h"

namespace crema {

class Layer;
class LayerParameter;

// A blob as Python code sees it: float32, row-major, in host memory. It is either its own memory,
// allocated and zeroed on first use, or a view of a net's. Python code may keep it and use it from
// any thread, also while the net runs.
class HostBlob {
 public:
  HostBlob(std::shared_ptr<Context> host, Shape shape)
      : host_(std::move(host)), shape_(std::move(shape)) {}

  Shape shape() const;
  // Keeps the content if the new shape fits into its memory (a smaller one has the first values),
  // otherwise zeros it. Arrays that Python still holds keep the old memory.
  void reshape(const Shape& shape);
  // From now on reshape() to another shape is an Error, because the net has memory for this
  // parameter.
  void fix_shape();

  // The tensors have the blob's shape.
  Tensor data() { return filled(data_); }
  Tensor diff() { return filled(diff_); }
  // Whether there is any content: false before it is first used or viewed.
  bool has_data() const { return has(data_); }
  bool has_diff() const { return has(diff_); }

  // From now on the content is this memory (host, float32, row-major). An empty tensor, or one
  // smaller than the shape, means own memory again, zeroed on first use.
  void view_data(Tensor memory) { view(data_, std::move(memory)); }
  void view_diff(Tensor memory) { view(diff_, std::move(memory)); }

 private:
  Tensor filled(Tensor& memory);
  bool has(const Tensor& memory) const;
  void view(Tensor& memory, Tensor other);

  mutable std::mutex mutex_;
  bool fixed_ = false;
  std::shared_ptr<Context> host_;
  Shape shape_;
  Tensor data_, diff_;  // as large as the largest shape so far
};

using HostBlobs = std::vector<std::shared_ptr<HostBlob>>;

// The class, and the attributes of its object.
struct PythonClass {
  std::string module, layer;  // python_param { module layer }
  std::string param_str;
  std::string name;      // of the layer
  bool training = true;  // phase TRAIN
  int rank = 0, ranks = 1;
  std::string folder;  // folder of the prototxt: modules are found there too
  std::shared_ptr<Context> host;
};

// An object of a Python class. Each function calls the method of its name; an exception in it
// becomes an Error with its type, its text and the last lines of the traceback. Callers do not need
// the interpreter's lock.
class PythonObject {
 public:
  virtual ~PythonObject() = default;
  virtual void setup(const HostBlobs& bottom, const HostBlobs& top) = 0;
  virtual void reshape(const HostBlobs& bottom, const HostBlobs& top) = 0;
  // pass: as Forward::pass.
  virtual void forward(uint64_t pass, const HostBlobs& bottom, const HostBlobs& top) = 0;
  virtual void backward(const HostBlobs& top, const std::vector<bool>& propagate_down,
                        const HostBlobs& bottom) = 0;
  // The blobs that setup added with self.blobs.add_blob().
  virtual HostBlobs blobs() = 0;
  // The attribute of that name: "mean", "sum", or "" if the class has none.
  virtual std::string loss_parts() { return ""; }
};

// Makes an object; Error when the module or the class is not found.
using PythonMaker = std::unique_ptr<PythonObject> (*)(const PythonClass&);
void set_python_maker(PythonMaker maker);
bool has_python_maker();

// Called when a Python layer is made and there is no maker yet: starts an interpreter, which sets one.
// Error when it cannot.
void set_python_starter(void (*starter)());

// Starts the interpreter if need be. null: this program runs no Python layers.
PythonMaker python_maker();

// The file of a Python module, "" if there is none: found as by Python if an interpreter runs,
// otherwise in PYTHONPATH, the working directory and the folder of the prototxt. Starts no
// interpreter.
std::string find_python_module(const std::string& module, const std::string& folder);
using PythonFinder = std::string (*)(const std::string& module, const std::string& folder);
void set_python_finder(PythonFinder finder);

// Registers which author's file runs instead of what the type's chooser (layer.h) would make; used
// by layers/python for its native versions.
struct OverridingTag {};
using OverridingModule = std::string (*)(const LayerParameter& message, const std::string& folder);
using OverridingRegistry = Registry<OverridingTag, OverridingModule>;

// The object behind a layer; null if it is not a Python layer.
PythonObject* python_object(Layer& layer);

// While on, forward() returns the tops of the last pass again and does not call the object: for a
// repeated pass with the same bottoms. Has no effect on other layers.
void repeat_python(Layer& layer, bool on);

}  // namespace crema
