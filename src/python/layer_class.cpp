// crema.Layer, and how exceptions inside layers come back to Python.
#include <functional>

#include "base/error.h"
#include "python/bindings.h"
#include "python/python_layer.h"

namespace crema::python {

namespace py = pybind11;

void install_python_layers();

namespace {

// The exception behind the last Error of a Python layer. Guarded by the interpreter's lock; never
// freed, because the interpreter may be gone at exit.
struct LayerError {
  std::string text;
  PyObject* exception = nullptr;
};

LayerError& last_cause() {
  static auto* const cause = new LayerError;
  return *cause;
}

// The innermost frames: " (at layers.py:7 in forward: x = y; ...)". In one line, as logs want it.
std::string lines_of_traceback(const py::object& traceback) {
  constexpr size_t kLines = 3;
  std::vector<std::string> lines;
  for (const py::handle frame :
       py::list(py::module_::import("traceback").attr("extract_tb")(traceback))) {
    const std::string file = py::str(frame.attr("filename")), line = py::str(frame.attr("line"));
    // The import itself.
    if (file.rfind("<frozen ", 0) == 0 || file.find("/importlib/") != std::string::npos) continue;
    lines.push_back(cat(file, ":", std::string(py::str(frame.attr("lineno"))), " in ",
                        std::string(py::str(frame.attr("name"))), line.empty() ? "" : ": ", line));
  }
  if (lines.size() > kLines) lines.erase(lines.begin(), lines.end() - kLines);
  return lines.empty() ? "" : cat(" (at ", join(lines, "; "), ")");
}

// The last line that Python prints, "ValueError: ...", followed by the lines before it: the
// position of a syntax error.
std::string text_of_exception(const py::error_already_set& exception) {
  const py::list parts = py::module_::import("traceback")
                             .attr("format_exception_only")(exception.type(), exception.value());
  std::string text(trim(std::string(py::str(parts[parts.size() - 1]))));
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    for (const std::string& line : split(std::string(py::str(parts[i])), '\n')) {
      if (line.find_first_not_of(" ^~") != std::string::npos) text += cat(", ", trim(line));
    }
  }
  return exception.trace() ? text + lines_of_traceback(exception.trace()) : text;
}

// Makes the Error that reaches Python, with its cause; an interrupt is passed on unchanged.
bool raise_with_cause(const Error& error, const py::handle& type) {
  LayerError& cause = last_cause();
  if (!cause.exception || std::string_view(error.what()).find(cause.text) == std::string_view::npos)
    return false;
  const py::object original = py::reinterpret_steal<py::object>(cause.exception);
  cause = {};
  if (!PyObject_IsInstance(original.ptr(), PyExc_Exception)) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(original.ptr())), original.ptr());
    return true;
  }
  const py::object raised = type(error.what());
  PyException_SetCause(raised.ptr(), py::object(original).release().ptr());
  PyErr_SetObject(type.ptr(), raised.ptr());
  return true;
}

std::shared_ptr<BlobObject> blob_of_layer(const LayerBlobs& blobs, py::ssize_t index) {
  const auto count = static_cast<py::ssize_t>(blobs.all.size());
  const py::ssize_t at = index < 0 ? index + count : index;
  if (at < 0 || at >= count)
    throw py::index_error(cat("blob ", index, " of a layer that has ", count));
  return blobs.all[static_cast<size_t>(at)];
}

std::shared_ptr<BlobObject> add_layer_blob(LayerBlobs& blobs, const py::args& extents) {
  if (!blobs.host) blobs.host = std::make_shared<Context>(Device::cpu);
  const bool is_sequence = extents.size() == 1 && py::isinstance<py::sequence>(extents[0]);
  const Shape shape = shape_of(is_sequence ? py::object(extents[0]) : py::object(extents));
  blobs.all.push_back(
      std::make_shared<HostBlobObject>(std::make_shared<HostBlob>(blobs.host, shape)));
  return blobs.all.back();
}

void bind_layer_blobs(py::module_& module) {
  py::class_<LayerBlobs, std::shared_ptr<LayerBlobs>>(
      module, "LayerBlobs", "The parameters of a layer: a sequence of Blob.")
      .def("add_blob", add_layer_blob,
           "Adds a parameter of this shape, at first zero, and returns its Blob: add_blob(10, 3). "
           "For a Layer's setup().")
      .def("__len__", [](const LayerBlobs& blobs) { return blobs.all.size(); })
      .def("__getitem__", blob_of_layer, py::arg("index"));
}

// An attribute that a layer's author may overwrite: a descriptor without __set__, so an assignment
// to the name goes into the object and does not conflict.
struct LayerAttribute {
  std::function<py::object(const PythonLayerBase&)> read;
};

void bind_layer_attribute(py::module_& module) {
  py::class_<LayerAttribute>(module, "_LayerAttribute")
      .def("__get__", [](const py::object& self, const py::object& layer, const py::object&) {
        if (layer.is_none()) return self;
        return self.cast<const LayerAttribute&>().read(layer.cast<const PythonLayerBase&>());
      });
}

template <typename Value>
void add_attribute(const py::object& type, const char* name, Value PythonLayerBase::*member) {
  type.attr(name) = py::cast(
      LayerAttribute{[member](const PythonLayerBase& layer) { return py::cast(layer.*member); }});
}

void default_setup(PythonLayerBase&, const py::object&, const py::object&) {}

constexpr const char* kLayerDoc =
    R"(Base class of layers written in Python; a net uses it with

    layer { name: "loss" type: "Python" bottom: "x" bottom: "y" top: "loss"
            python_param { module: "my_layers" layer: "MyLoss" param_str: "0.5" } }

where my_layers.py is in PYTHONPATH, the working directory or the folder of the prototxt. Its methods
get lists of Blob, whose data and diff are NumPy arrays (write into them: top[0].data[...] = x):

    setup(bottom, top)       once: reads self.param_str, adds parameters (self.blobs.add_blob(3, 4))
    reshape(bottom, top)     gives the tops their shapes: top[0].reshape(*bottom[0].shape)
    forward(bottom, top)     writes top[i].data, and may reshape the tops before
    backward(top, propagate_down, bottom)
                             writes bottom[i].diff from top[i].diff where propagate_down[i] is true, and
                             adds to self.blobs[i].diff

Attributes: param_str, phase (crema.TRAIN or crema.TEST), name, blobs, type; pass_number, how many passes the
net ran before this one: data that depend on it alone are the same after a resume; rank and ranks of a training by
several, each of which makes its own part of a batch. A class may use these names for values of its own.
loss_parts = 'mean' or 'sum' of a class says how the losses of several ranks become that of a batch they share.
An exception in a method ends the pass with a crema.Error, whose __cause__ is that exception.)";

}  // namespace

void fail_with(py::error_already_set& exception, const std::string& where) {
  std::string text = where + ": ";
  try {
    text += text_of_exception(exception);
  } catch (const std::exception&) {  // its text is no text, or it fails itself
    text += "an exception that cannot be shown";
  }
  LayerError& cause = last_cause();
  Py_XDECREF(cause.exception);
  cause.text = text;
  PyObject* const value = exception.value().inc_ref().ptr();
  if (exception.trace()) PyException_SetTraceback(value, exception.trace().ptr());
  cause.exception = value;
  fail(text);
}

void bind_layer_class(py::module_& module) {
  bind_layer_blobs(module);
  bind_layer_attribute(module);
  py::class_<PythonLayerBase, std::shared_ptr<PythonLayerBase>> layer(
      module, "Layer", py::dynamic_attr(), kLayerDoc);
  layer
      .def(py::init(
          [](const py::args&, const py::kwargs&) { return std::make_shared<PythonLayerBase>(); }))
      .def("setup", default_setup, py::arg("bottom"), py::arg("top"), "Called once. Does nothing.");
  add_attribute(layer, "param_str", &PythonLayerBase::param_str);
  add_attribute(layer, "param_str_", &PythonLayerBase::param_str);  // its name until 2015
  add_attribute(layer, "phase", &PythonLayerBase::phase);
  add_attribute(layer, "name", &PythonLayerBase::name);
  add_attribute(layer, "type", &PythonLayerBase::type);
  add_attribute(layer, "blobs", &PythonLayerBase::blobs);
  add_attribute(layer, "pass_number", &PythonLayerBase::pass_number);
  add_attribute(layer, "rank", &PythonLayerBase::rank);
  add_attribute(layer, "ranks", &PythonLayerBase::ranks);
  static PyObject* const error_type = py::object(module.attr("Error")).release().ptr();
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(std::move(pointer));
    } catch (const Error& error) {
      if (!raise_with_cause(error, error_type)) throw;
    }
  });
  install_python_layers();
}

}  // namespace crema::python
