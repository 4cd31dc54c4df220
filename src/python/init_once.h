// __init__ of a class whose objects take a while to make, with the interpreter's lock released:
// another thread, or a Python layer, may call it for the same object meanwhile. pybind11's py::init
// would then register the object twice.
#pragma once

#include <pybind11/pybind11.h>

#include <utility>

namespace crema::python {

// make: a function that returns the class's holder.
template <typename Class, typename Holder, typename... Arguments, typename... Extra>
void define_init(Class& type, Holder (*make)(Arguments...), const Extra&... extra) {
  namespace py = pybind11;
  type.def(
      "__init__",
      [make](py::detail::value_and_holder& object, Arguments... arguments) {
        Holder made = make(std::forward<Arguments>(arguments)...);
        if (object.instance_registered())
          throw py::type_error("__init__ of this object has run in another thread meanwhile");
        py::detail::initimpl::construct<Class>(object, std::move(made), false);
      },
      py::detail::is_new_style_constructor(), extra...);
}

}  // namespace crema::python
