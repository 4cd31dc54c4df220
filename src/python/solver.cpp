// Binds SolverObject as _crema.Solver, which crema/solvers.py completes.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "base/error.h"
#include "kernels/optim/update.h"
#include "proto/solver.pb.h"
#include "python/bindings.h"
#include "python/init_once.h"
#include "python/mode.h"
#include "python/solver_events.h"
#include "python/solver_object.h"

namespace crema::python {

namespace py = pybind11;

namespace {

SolverFile read_solver(const std::string& file, bool is_text) {
  return is_text ? parse_solver_text(file, "text") : read_solver_file(checked_path(file));
}

std::unique_ptr<SolverObject> make_solver(const std::string& file, bool is_text,
                                          const std::string& type,
                                          const std::vector<std::string>& weights,
                                          const std::string& snapshot, std::optional<int> level,
                                          const std::vector<std::string>& stages,
                                          const std::string& precision, bool log) {
  for (const std::string& path : weights) checked_path(path);
  checked_path(snapshot);
  return std::make_unique<SolverObject>(
      read_solver(file, is_text),
      SolverFormat{type, weights, snapshot, level, stages, precision, log});
}

void solve(const py::object& self, const std::string& state) {
  checked_path(state);
  auto& object = self.cast<SolverObject&>();
  object.run(self, "solve", [&] {
    if (!state.empty()) object.solver().restore(state);
    object.solver().solve();
  });
}

void step(const py::object& self, int64_t iterations) {
  require(iterations >= 0, "step(", iterations, "): expected a number of iterations");
  auto& object = self.cast<SolverObject&>();
  object.run(self, "step", [&] { object.solver().step(iterations); });
}

void restore(const py::object& self, const std::string& state) {
  checked_path(state);
  auto& object = self.cast<SolverObject&>();
  object.run(self, "restore", [&] { object.solver().restore(state); });
}

py::tuple snapshot(const py::object& self) {
  auto& object = self.cast<SolverObject&>();
  object.run(self, "snapshot", [&] { object.solver().snapshot(); });
  return py::make_tuple(object.saved().weights, object.saved().state);
}

void apply_update(const py::object& self) {
  auto& object = self.cast<SolverObject&>();
  object.run(self, "apply_update", [&] { object.solver().apply_update(); });
}

py::dict dict_of_test(const event::TestResult& test) {
  py::dict results = dict_of(test.outputs);
  if (test.loss && !results.contains("loss")) results["loss"] = *test.loss;
  return results;
}

py::object test(const py::object& self, int net) {
  require(net >= 0, "test(", net, "): test nets are numbered from 0");
  auto& object = self.cast<SolverObject&>();
  object.run(self, "test", [&] { object.solver().test_one(static_cast<size_t>(net)); });
  if (object.tests().empty()) return py::none();  // stopped
  return dict_of_test(object.tests().back());
}

py::list test_all(const py::object& self) {
  auto& object = self.cast<SolverObject&>();
  object.run(self, "test_all", [&] { object.solver().test_all(); });
  py::list all;
  for (const event::TestResult& test : object.tests()) all.append(dict_of_test(test));
  return all;
}

double rate(SolverObject& object) {
  const DeviceScope scope = enter(object.context());
  return object.solver().rate();
}

}  // namespace

void bind_solver(py::module_& module) {
  const py::object error = module.attr("Error");
  py::register_exception<DeviceLost>(module, "DeviceLost", error);
  py::register_exception<Diverged>(module, "Diverged", error);
  module.attr("DeviceLost").attr("__doc__") =
      "The GPU is lost to this process; the message names the snapshot to resume from.";
  module.attr("Diverged").attr("__doc__") =
      "Loss or weights have become NaN or infinite: the message names the iteration, the layer and "
      "the blob.";
  module.def(
      "solver_type",
      [](const std::string& file, bool is_text) {
        const std::string type = read_solver(file, is_text).solver.type();
        update_rule(type);  // an Error where there is none of that name
        return type;
      },
      py::arg("file"), py::arg("is_text") = false, "The type of a solver's file: \"SGD\", ...");

  py::class_<SolverObject> solver(module, "Solver");
  define_init(solver, &make_solver, py::arg("file"), py::arg("is_text"), py::arg("type"),
              py::arg("weights"), py::arg("snapshot"), py::arg("level"), py::arg("stages"),
              py::arg("precision"), py::arg("log"));
  solver.def_property_readonly("net", &SolverObject::net, "The net in training.")
      .def_property_readonly("test_nets", &SolverObject::test_nets,
                             "The nets of the tests, a list.")
      .def_property_readonly(
          "iter", [](SolverObject& object) { return object.solver().iteration(); },
          "The number of completed iterations.")
      .def_property_readonly("lr", &rate, "The learning rate of the next iteration.")
      .def_property_readonly(
          "loss", [](SolverObject& object) { return object.solver().loss(); },
          "The training loss: the mean over the last average_loss iterations (1 unless the solver "
          "says\n"
          "another number); nan before the first.")
      .def_property_readonly(
          "seed", [](SolverObject& object) { return object.solver().seed(); },
          "The seed of this training.")
      .def("solve", &solve, py::arg("resume_file") = "")
      .def("step", &step, py::arg("iterations"))
      .def("restore", &restore, py::arg("file"))
      .def("snapshot", &snapshot)
      .def("apply_update", &apply_update)
      .def("test", &test, py::arg("net") = 0)
      .def("test_all", &test_all)
      .def("stop", &SolverObject::stop)
      .def("_set_wanted", &SolverObject::set_wanted)
      .def("_call_on_start", &SolverObject::call_on_start)
      .def("_call_on_gradients_ready", &SolverObject::call_on_gradients_ready)
      .def("_parameter",
           [](SolverObject& object) {
             return py::bytes(object.solver().parameter().SerializeAsString());
           })
      .def("_set_base_lr",
           [](SolverObject& object, double value) { object.solver().set_base_rate(value); })
      .def("_set_max_iter",
           [](SolverObject& object, int64_t value) { object.solver().set_max_iterations(value); })
      .def("_set_display",
           [](SolverObject& object, int64_t value) { object.solver().set_display(value); });
}

}  // namespace crema::python
