// The parts of the extension module, one file each. Exceptions of crema become Python's
// (exceptions.cpp); whatever computes releases the interpreter's lock.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace crema::python {

void bind_exceptions(pybind11::module_& module);
// A path as it is; ValueError when a NUL would cut it short.
std::string checked_path(std::string path);

// ImportError in a sub-interpreter.
void require_main_interpreter();
void bind_gil(pybind11::module_& module);
void bind_net(pybind11::module_& module);
void bind_blob(pybind11::module_& module);
void bind_messages(pybind11::module_& module);
void bind_mode(pybind11::module_& module);
void bind_log(pybind11::module_& module);
void bind_mode_ranks(pybind11::module_& module);
void bind_solver(pybind11::module_& module);
void bind_layer_class(pybind11::module_& module);
void complete_classes(const pybind11::module_& module);  // when all are there

}  // namespace crema::python
