// Common behaviour of all classes of the module. Using an object that was never initialized is a
// TypeError, and so are copying one with state that Python does not see and changing __class__.
// Functions take an X&, not a shared_ptr<X>: for that pybind11 raises a RuntimeError.
#include <map>
#include <string>

#include "base/error.h"
#include "python/bindings.h"

namespace crema::python {

namespace py = pybind11;

namespace {

// pybind11 calls this for an object without a value, to get memory for an old form of __init__.
// X.__new__(X) has none, and neither has a subclass before super().__init__().
void* refuse_uninitialized(size_t) {
  throw py::type_error(
      "this object was never initialized: make it by calling its class, and in a subclass call "
      "super().__init__() first");
}

const std::map<std::string, std::string>& instead_of_copies() {
  static const auto* const all = new std::map<std::string, std::string>{
      {"Blob", "copy its values, blob.data.copy()"},
      {"Layer", "give its class __getstate__ and __setstate__, or __reduce__"},
      {"LayerBlobs", "copy the data of its blobs"},
      {"Net", "save its weights with net.save(), and open the net anew from its prototxt"},
      {"NetLayer", "copy the data of its blobs"},
      {"Solver", "solver.snapshot() writes files, from which solver.restore() goes on"}};
  return *all;
}

// A class of the user's that says what its state is restores it in __setstate__.
py::object reduce(const py::object& self, const std::string& instead) {
  const py::type type = py::type::of(self);
  const py::object own = py::getattr(type, "__getstate__", py::none());
  const py::object object = py::module_::import("builtins").attr("object");
  if (!own.is_none() && !own.is(py::getattr(object, "__getstate__", py::none()))) {
    const py::object make = py::module_::import("copyreg").attr("__newobj__");
    return py::make_tuple(make, py::make_tuple(type), self.attr("__getstate__")());
  }
  throw py::type_error(cat(std::string(py::str(type.attr("__name__"))),
                           " objects cannot be copied or pickled", instead.empty() ? "" : ": ",
                           instead));
}

// An assignment to __class__ must not make one C++ object of another.
void set_class(const py::object& self, const py::object& other) {
  const auto types_of = [](PyObject* type) {
    return py::detail::all_type_info(reinterpret_cast<PyTypeObject*>(type));
  };
  if (!PyType_Check(other.ptr()) ||
      types_of(other.ptr()) != types_of(reinterpret_cast<PyObject*>(Py_TYPE(self.ptr()))))
    throw py::type_error("__class__ can become another class only with the same base in crema");
  const py::object object = py::module_::import("builtins").attr("object");
  object.attr("__dict__")["__class__"].attr("__set__")(self, other);
}

// In the class itself: as an attribute it would be the class of the class.
void guard_class(const py::handle& type) {
  const py::module_ builtins = py::module_::import("builtins");
  const py::object property =
      builtins.attr("property")(builtins.attr("type"), py::cpp_function(&set_class));
  auto* const object = reinterpret_cast<PyTypeObject*>(type.ptr());
  if (PyDict_SetItemString(object->tp_dict, "__class__", property.ptr()) != 0)
    throw py::error_already_set();
  PyType_Modified(object);
}

}  // namespace

void complete_classes(const py::module_& module) {
  const auto members = module.attr("__dict__").cast<py::dict>();
  for (const auto& [name, value] : members) {
    if (!PyType_Check(value.ptr())) continue;
    py::detail::type_info* const info =
        py::detail::get_type_info(reinterpret_cast<PyTypeObject*>(value.ptr()));
    if (!info) continue;  // an exception, or a list
    info->operator_new = refuse_uninitialized;
    guard_class(value);
    const auto instead = instead_of_copies().find(name.cast<std::string>());
    const std::string advice = instead == instead_of_copies().end() ? "" : instead->second;
    py::setattr(value, "__reduce__",
                py::cpp_function([advice](const py::object& self) { return reduce(self, advice); },
                                 py::is_method(value), py::name("__reduce__")));
  }
}

}  // namespace crema::python
