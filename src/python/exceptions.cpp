#include "base/exceptions.h"

#include "python/bindings.h"

namespace crema::python {

namespace py = pybind11;

void bind_exceptions(py::module_& module) {
  py::register_exception<Error>(module, "Error", PyExc_RuntimeError);
}

}  // namespace crema::python
