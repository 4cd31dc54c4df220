// SolverObject: implements Python's solvers. It passes the solver's events and callbacks to Python,
// lets Ctrl-C stop a run, and holds the interpreter's lock only for that.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/context.h"
#include "net/prototxt/prototxt.h"
#include "python/net/net_object.h"
#include "solver/solver.h"

namespace crema::python {

// Options of a Python solver.
struct SolverFormat {
  std::string type;  // in place of the file's; "": the file's
  std::vector<std::string> weights;
  std::string snapshot;
  std::optional<int> level;
  std::vector<std::string> stages;
  std::string precision;  // "": the file's, or what the device computes in
  bool log = true;
};

class SolverObject;

// The part that nets and arrays keep alive after the solver itself has gone.
struct SolverCore : EventReader {
  SolverCore(SolverFile file, const SolverFormat& format);
  ~SolverCore() override;
  void read(const Event& event) override;

  std::unique_ptr<Context> context;
  SolverObject* running = nullptr;  // the object whose call runs now
  std::unique_ptr<Solver> solver;
  const MadeInProcess made;
};

class SolverObject {
 public:
  // Errors as those of Solver.
  SolverObject(SolverFile file, const SolverFormat& format);

  Solver& solver() { return *core_->solver; }
  Context& context() { return *core_->context; }
  const std::shared_ptr<NetObject>& net() const { return net_; }
  const std::vector<std::shared_ptr<NetObject>>& test_nets() const { return test_nets_; }

  // Runs `work` with the interpreter's lock released. `self` is the Python object: its methods
  // _on_event, _on_start and _on_gradients_ready are called. Waits for another thread that uses the
  // solver. Error if a callback of the running solver calls it; rethrows what a callback or a
  // signal handler raised, and the solver can continue.
  void run(const pybind11::handle& self, const char* call, const std::function<void()>& work);
  // Ends the running call after its iteration; from any thread.
  void stop() { stop_ = true; }

  // Which events _on_event gets: any, and those of each iteration and batch.
  void set_wanted(bool events, bool steps);
  // From now on each iteration calls _on_start or _on_gradients_ready. Error while it runs.
  void call_on_start();
  void call_on_gradients_ready();

  // The fields of the last call.
  const std::vector<event::TestResult>& tests() const { return tests_; }
  const event::SnapshotDone& saved() const { return saved_; }

 private:
  friend struct SolverCore;
  class Running;
  void read(const Event& event);
  Action action();
  void call(const char* method);
  void check_idle() const;
  void write_back();
  void read_back() noexcept;

  std::shared_ptr<SolverCore> core_;
  std::shared_ptr<NetObject> net_;
  std::vector<std::shared_ptr<NetObject>> test_nets_;
  pybind11::handle self_;  // of the running call
  std::atomic<bool> stop_ = false;
  bool wants_events_ = false, wants_steps_ = false;
  bool calls_on_start_ = false, calls_on_gradients_ready_ = false, steps_singly_ = false;
  std::chrono::steady_clock::time_point looked_at_;         // for signals
  std::optional<pybind11::error_already_set> interrupted_;  // what a signal or a reader raised
  std::vector<event::TestResult> tests_;
  event::SnapshotDone saved_;
};

}  // namespace crema::python
