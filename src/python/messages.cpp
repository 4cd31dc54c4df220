#include <memory>

#include "net/prototxt/prototxt.h"
#include "net/prototxt/settings.h"
#include "proto/net.pb.h"
#include "proto/solver.pb.h"
#include "python/bindings.h"

namespace crema::python {

namespace py = pybind11;

// Messages are passed as bytes: the module's protobuf and Python's are independent.
void bind_messages(py::module_& module) {
  module.def(
      "_net_message",
      [](const std::string& text, const std::string& name,
         const std::vector<std::string>& settings) {
        Settings given(settings);
        const NetFile file = parse_net_text(text, name, &given);
        given.require_used();
        return py::bytes(file.net.SerializeAsString());
      },
      py::arg("text"), py::arg("name") = "text", py::arg("settings") = std::vector<std::string>(),
      "A net's text as the bytes of a NetParameter: includes, variables and repeats written out,\n"
      "older forms upgraded, and settings applied as the programs' -set does. Errors name the "
      "file\n"
      "`name`; includes are searched next to it.");
  module.def(
      "_solver_message",
      [](const std::string& text, const std::string& name,
         const std::vector<std::string>& settings) {
        const auto given = std::make_shared<Settings>(settings);
        const SolverFile file = parse_solver_text(text, name, given);
        given->require_used();
        return py::bytes(file.solver.SerializeAsString());
      },
      py::arg("text"), py::arg("name") = "text", py::arg("settings") = std::vector<std::string>(),
      "A solver's text as the bytes of a SolverParameter; see _net_message.");
}

}  // namespace crema::python
