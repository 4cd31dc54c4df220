#include "python/bindings.h"
#include "python/log.h"

namespace crema::python {

void bind_log_level(pybind11::module_& module) {
  module.def(
      "_exchange_log_level",
      [](int level) {
        const int before = the_log().level();
        the_log().set_level(level);
        return before;
      },
      pybind11::arg("level"),
      "Sets which lines of the log are written, see init_log, and returns what that was before.");
}

}  // namespace crema::python
