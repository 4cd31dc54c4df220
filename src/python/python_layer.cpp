#include "python/python_layer.h"

#include <filesystem>

#include "base/error.h"
#include "python/gil.h"

namespace crema::python {

namespace py = pybind11;

namespace {

bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}

py::object blob_list(const HostBlobs& blobs) {
  py::list list;
  for (const auto& blob : blobs)
    list.append(std::static_pointer_cast<BlobObject>(std::make_shared<HostBlobObject>(blob)));
  return py::module_::import("crema._crema").attr("RawBlobVec")(list);
}

class PythonInstance : public PythonObject {
 public:
  PythonInstance(py::object object, std::string class_name)
      : object_(std::move(object)), class_name_(std::move(class_name)) {}

  // A net may outlive the interpreter, which has freed its objects then.
  ~PythonInstance() override {  // NOLINT(bugprone-exception-escape): not where an interpreter runs
    if (!Py_IsInitialized() || (is_finalizing() && !PyGILState_Check())) {
      object_.release();
      bottom_.release();
      top_.release();
      return;
    }
    const TakeGil lock;
    object_ = py::object();
    bottom_ = top_ = py::object();
  }

  const py::object& object() const { return object_; }
  PythonLayerBase& base() const { return object_.cast<PythonLayerBase&>(); }

  void setup(const HostBlobs& bottom, const HostBlobs& top) override {
    {
      const TakeGil lock;
      bottom_ = blob_list(bottom);
      top_ = blob_list(top);
    }
    call("setup", [&](const py::object& method) {
      call_python(method, {bottom_.ptr(), top_.ptr()});
    });
  }
  void reshape(const HostBlobs&, const HostBlobs&) override {
    call("reshape", [&](const py::object& method) {
      call_python(method, {bottom_.ptr(), top_.ptr()});
    });
  }
  void forward(uint64_t pass, const HostBlobs&, const HostBlobs&) override {
    call("forward", [&](const py::object& method) {
      base().pass_number = pass;
      call_python(method, {bottom_.ptr(), top_.ptr()});
    });
  }
  void backward(const HostBlobs&, const std::vector<bool>& propagate_down,
                const HostBlobs&) override {
    call("backward", [&](const py::object& method) {
      py::list propagate;
      for (const bool one : propagate_down) propagate.append(py::bool_(one));
      call_python(method, {top_.ptr(), propagate.ptr(), bottom_.ptr()});
    });
  }

  std::string loss_parts() override {
    const py::gil_scoped_acquire lock;
    const py::object parts = py::getattr(object_, "loss_parts", py::none());
    return parts.is_none() ? "" : std::string(py::str(parts));
  }

  HostBlobs blobs() override {
    const TakeGil lock;
    HostBlobs all;
    for (const auto& blob : base().blobs->all) all.push_back(blob->blob());
    return all;
  }

 private:
  template <typename Body>
  void call(const char* name, const Body& body) {
    const TakeGil lock;
    const std::string where = cat(class_name_, ".", name, "()");
    require(py::hasattr(object_, name), "class ", class_name_, " has no ", name,
            "(), which this net calls");
    try {
      body(object_.attr(name));
    } catch (py::error_already_set& exception) {
      fail_with(exception, where);
    } catch (const py::cast_error& error) {
      fail(where, ": ", error.what());
    }
  }

  py::object object_;
  std::string class_name_;
  py::object bottom_, top_;  // lists of Blob
};

// Module search paths as with `python SCRIPT`, and the prototxt's folder. Appended last, so that no
// file there hides a library's module.
void extend_path(const std::string& folder) {
  py::list path = py::module_::import("sys").attr("path");
  std::error_code ignored;
  for (const std::string& one : {std::string("."), folder}) {
    std::filesystem::path absolute = std::filesystem::absolute(one, ignored).lexically_normal();
    if (!absolute.has_filename()) absolute = absolute.parent_path();  // not "/folder/"
    if (!one.empty() && !path.contains(absolute.string())) path.append(absolute.string());
  }
}

py::object import_module(const PythonClass& wanted) {
  extend_path(wanted.folder);
  try {
    const py::str name(wanted.module);
    return call_python(py::module_::import("importlib").attr("import_module"), {name.ptr()});
  } catch (py::error_already_set& exception) {
    if (exception.matches(PyExc_ModuleNotFoundError)) {
      const py::object missing = py::getattr(exception.value(), "name", py::none());
      const std::string name = missing.is_none() ? "" : py::str(missing);
      if (name == wanted.module || wanted.module.rfind(name + ".", 0) == 0) {
        fail("there is no Python module ", wanted.module,
             name == wanted.module ? "" : cat(" (", name, ")"),
             ": it is looked for in PYTHONPATH, the working directory and the folder of the "
             "prototxt",
             "; -assume TOP=SHAPE for each top of the layer puts inputs in its place");
      }
    }
    fail_with(exception, cat("the import of the Python module ", wanted.module));
  }
}

py::object find_class(const PythonClass& wanted) {
  const py::object module = import_module(wanted);
  const py::object base = py::type::of<PythonLayerBase>();
  const auto is_layer = [&](const py::handle& object) {
    return PyType_Check(object.ptr()) &&
           PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(object.ptr()),
                            reinterpret_cast<PyTypeObject*>(base.ptr()));
  };
  const py::object found = py::getattr(module, wanted.layer.c_str(), py::none());
  if (is_layer(found)) return found;
  require(found.is_none(), "\"", wanted.layer, "\" of the Python module ", wanted.module,
          " is not a class that derives from crema.Layer");
  std::vector<std::string> names;
  for (const auto& [name, object] : module.attr("__dict__").cast<py::dict>()) {
    if (is_layer(object) && !object.is(base)) names.push_back(py::str(name));
  }
  const py::object file = py::getattr(module, "__file__", py::none());
  fail("the Python module ", wanted.module,
       file.is_none() ? "" : cat(" (", std::string(py::str(file)), ")"), " has no class ",
       wanted.layer, did_you_mean(wanted.layer, names),
       names.empty() ? "; it has none that derives from crema.Layer"
                     : cat("; its layers are ", join(names, ", ")));
}

// Old classes may pass on an argument that Caffe makes them with.
py::object make_object(const py::object& type) {
  const py::object signature = py::module_::import("inspect").attr("signature");
  const py::object init = type.attr("__init__");
  if (PyFunction_Check(init.ptr())) {
    const py::object of_init = signature(init);
    try {
      of_init.attr("bind")(py::none());
    } catch (py::error_already_set& exception) {
      if (!exception.matches(PyExc_TypeError)) throw;
      return call_python(type, {Py_None});
    }
  }
  return call_python(type, {});
}

std::unique_ptr<PythonObject> make_python_layer(const PythonClass& wanted) {
  const TakeGil lock;
  py::object object;
  try {
    object = make_object(find_class(wanted));
  } catch (py::error_already_set& exception) {
    fail_with(exception, cat(wanted.layer, "()"));
  }
  require(py::isinstance<PythonLayerBase>(object), "class ", wanted.layer, " of the Python module ",
          wanted.module, " makes objects that are no crema.Layer");
  auto& base = object.cast<PythonLayerBase&>();
  base.param_str = wanted.param_str;
  base.name = wanted.name;
  base.phase = wanted.training ? 0 : 1;
  base.rank = wanted.rank;
  base.ranks = wanted.ranks;
  base.blobs->host = wanted.host;
  return std::make_unique<PythonInstance>(std::move(object), wanted.layer);
}

// As an import would find it; parents are imported for that.
std::string find_module(const std::string& module, const std::string& folder) {
  const TakeGil lock;
  extend_path(folder);
  try {
    const py::object spec = py::module_::import("importlib.util").attr("find_spec")(module);
    const py::object origin = spec.is_none() ? spec : spec.attr("origin");
    return origin.is_none() ? "" : py::str(origin);
  } catch (py::error_already_set&) {  // there is no such package, or it is no package
    return "";
  }
}

}  // namespace

void install_python_layers() {
  set_python_maker(make_python_layer);
  set_python_finder(find_module);
}

py::object python_instance(Net& net, const Node& node) {
  const auto* instance = dynamic_cast<PythonInstance*>(python_object(*node.layer));
  if (!instance) return py::none();
  const auto& blobs = instance->base().blobs->all;
  for (size_t k = 0; k < blobs.size() && k < node.parameters.size(); ++k) {
    const Parameter& parameter = net.parameters()[node.parameters[k]];
    if (is_plain(parameter.data)) blobs[k]->blob()->view_data(parameter.data);
    if (parameter.diff && is_plain(parameter.diff)) blobs[k]->blob()->view_diff(parameter.diff);
  }
  return instance->object();
}

}  // namespace crema::python
