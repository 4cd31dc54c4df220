#include "net/prototxt/prototxt.h"
#include "proto/net.pb.h"
#include "proto/solver.pb.h"
#include "python/bindings.h"

namespace crema::python {

namespace py = pybind11;

// Messages are passed as bytes: the module's protobuf and Python's are independent.
void bind_messages(py::module_& module) {
  module.def(
      "_net_message",
      [](const std::string& text, const std::string& name) {
        return py::bytes(parse_net_text(text, name).net.SerializeAsString());
      },
      py::arg("text"), py::arg("name") = "text",
      "A net's text as the bytes of a NetParameter: includes, variables and repeats written out,\n"
      "older forms upgraded. Errors name the file `name`; includes are searched next to "
      "it.");
  module.def(
      "_solver_message",
      [](const std::string& text, const std::string& name) {
        return py::bytes(parse_solver_text(text, name).solver.SerializeAsString());
      },
      py::arg("text"), py::arg("name") = "text",
      "A solver's text as the bytes of a SolverParameter; see _net_message.");
}

}  // namespace crema::python
