#include "python/bindings.h"

PYBIND11_MODULE(_crema, module) {
  crema::python::require_main_interpreter();
  module.doc() = "What crema/__init__.py presents.";
  crema::python::bind_gil(module);
  crema::python::bind_exceptions(module);
  crema::python::bind_net(module);
  crema::python::bind_blob(module);
  crema::python::bind_messages(module);
  crema::python::bind_mode(module);
  crema::python::bind_log(module);
  crema::python::bind_mode_ranks(module);
  crema::python::bind_layer_class(module);
  crema::python::bind_solver(module);  // after the nets
  crema::python::complete_classes(module);
}
