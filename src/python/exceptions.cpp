#include "base/exceptions.h"

#include "python/bindings.h"

namespace crema::python {

namespace py = pybind11;

std::string checked_path(std::string path) {
  if (path.find('\0') == std::string::npos) return path;
  throw py::value_error("a path has a NUL character in it");
}

void bind_exceptions(py::module_& module) {
  py::register_exception<Error>(module, "Error", PyExc_RuntimeError);
  // pybind11's is a RuntimeError, in words of C++.
  py::register_local_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(std::move(pointer));
    } catch (const py::cast_error&) {
      PyErr_SetString(PyExc_TypeError,
                      "an argument has a type or a value that this call cannot take");
    }
  });
}

}  // namespace crema::python
