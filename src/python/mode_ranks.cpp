// Functions that Caffe's train.py calls to train on several GPUs. A launcher starts Crema's ranks,
// so one rank works as before, and several are an error that explains how to start them.
#include <pybind11/pybind11.h>

#include <chrono>

#include "base/error.h"
#include "python/bindings.h"

namespace crema::python {

namespace py = pybind11;

namespace {

constexpr const char* kHow =
    "a solver in Python trains alone. Several ranks are started by a launcher: `crema train "
    "-solver "
    "SOLVER.prototxt -gpu 0,1`, or torchrun, mpirun or srun before `crema train`";

void set_solver_count(int count) {
  require(count >= 1, "set_solver_count(", count, "): expected a number of at least 1");
  require(count == 1, "set_solver_count(", count, "): ", kHow);
}

void set_solver_rank(int rank) {
  require(rank >= 0, "set_solver_rank(", rank, "): ranks are numbered from 0");
  require(rank == 0, "set_solver_rank(", rank, "): ", kHow);
}

// With one rank there is nothing to exchange.
struct Nccl {
  Nccl(const py::object& solver, const py::bytes&) : solver(solver) {}
  py::object solver;
};

// As Caffe's: milliseconds between start() and stop(), or since start().
class Timer {
 public:
  using Clock = std::chrono::steady_clock;
  void start() {
    begin_ = Clock::now();
    running_ = started_ = true;
  }
  void stop() {
    require(started_, "Timer.stop(): start() was not called");
    if (running_) end_ = Clock::now();
    running_ = false;
  }
  double ms() const {
    require(started_, "Timer.ms: start() was not called");
    const Clock::time_point end = running_ ? Clock::now() : end_;
    return std::chrono::duration<double, std::milli>(end - begin_).count();
  }

 private:
  bool running_ = false, started_ = false;
  Clock::time_point begin_, end_;
};

}  // namespace

void bind_mode_ranks(py::module_& module) {
  module.def(
      "solver_count", [] { return 1; }, "The number of solvers that train together: 1.");
  module.def("set_solver_count", &set_solver_count, py::arg("count"),
             "As Caffe's; a count above 1 is an Error that explains how to start several ranks.");
  module.def(
      "solver_rank", [] { return 0; }, "The number of this solver: 0.");
  module.def("set_solver_rank", &set_solver_rank, py::arg("rank"), "As Caffe's; a rank must be 0.");
  module.def(
      "set_multiprocess", [](bool) {}, py::arg("multiprocess"),
      "As Caffe's: scripts of one rank may call it.");

  py::class_<Nccl>(
      module, "NCCL",
      "What Caffe's train.py makes for each rank. One rank has nobody to exchange gradients "
      "with:\nit can be given to Solver.add_callback() and Net.after_backward(), and does "
      "nothing.")
      .def(py::init<const py::object&, const py::bytes&>(), py::arg("solver"), py::arg("uid"))
      .def_static(
          "new_uid", [] { return py::bytes(std::string(128, '\0')); },
          "Bytes that identify the group of ranks.")
      .def(
          "bcast", [](const Nccl&) {}, "The weights of rank 0 to all ranks: there is one.")
      .def("__call__", [](const Nccl&, const py::args&) {})
      .def_readonly("solver", &Nccl::solver);

  py::class_<Timer>(module, "Timer", "A stopwatch.")
      .def(py::init<>())
      .def("start", &Timer::start, "Starts, or starts again from 0.")
      .def("stop", &Timer::stop, "Stops.")
      .def_property_readonly("ms", &Timer::ms,
                             "Milliseconds from start() to stop(), or until now.");
}

}  // namespace crema::python
