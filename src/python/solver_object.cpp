#include "python/solver_object.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "net/prototxt/net_input.h"
#include "python/gil.h"
#include "python/mode.h"
#include "python/solver_events.h"

namespace crema::python {

namespace py = pybind11;

namespace {

// A person who presses Ctrl-C does not notice it, and asking costs a microsecond.
constexpr std::chrono::milliseconds kLookForSignals{50};

void take_type(SolverFile& file, const std::string& type, Log& log) {
  if (type.empty()) return;
  // As in Caffe, where only the class decides.
  if (file.solver.has_type() && file.solver.type() != type)
    log.warning(cat(file.where("type"), ": the solver's type is ", file.solver.type(),
                    ", but it is opened as ", type, "Solver: that counts"));
  file.solver.set_type(type);
}

SolverOptions options_of(const SolverFormat& format, const Context& context,
                         const SolverFile& file) {
  SolverOptions options;
  options.weights = format.weights;
  options.snapshot = format.snapshot;
  options.level = format.level;
  options.stages = format.stages;
  options.fills_inputs = true;
  options.net.precision =
      precision_for(context, format.precision.empty() ? file.solver.precision() : format.precision);
  options.resume_command = [](const std::string& state) {
    return cat("solver.restore(\"", state, "\")");
  };
  return options;
}

}  // namespace

SolverCore::SolverCore(SolverFile file, const SolverFormat& format) : context(make_context()) {
  if (!format.log) context->set_log(silent_log());
  const DeviceScope scope = enter(*context);
  take_type(file, format.type, context->log());
  write_notes(context->log(), file.notes);
  if (seed_is_chosen() && file.solver.random_seed() < 0)
    file.solver.set_random_seed(static_cast<int64_t>(context->seed & INT64_MAX));
  SolverOptions options = options_of(format, *context, file);
  options.readers = {this};
  options.action = [this] { return running ? running->action() : Action::none; };
  solver = std::make_unique<Solver>(*context, file, options);
}

SolverCore::~SolverCore() {
  if (!made.here()) {
    static_cast<void>(solver.release());
    static_cast<void>(context.release());
    return;
  }
  const DeviceScope scope = enter(*context);
  solver.reset();
}

void SolverCore::read(const Event& event) {
  if (running) running->read(event);
}

SolverObject::SolverObject(SolverFile file, const SolverFormat& format) {
  {
    const ReleaseGil release;
    core_ = std::make_shared<SolverCore>(std::move(file), format);
  }
  Solver& solver = *core_->solver;
  const auto lock = std::make_shared<NetLock>();
  net_ = std::make_shared<NetObject>(core_, solver.net(), lock, &solver.passes());
  for (size_t i = 0; i < solver.test_nets().size(); ++i)
    test_nets_.push_back(
        std::make_shared<NetObject>(core_, *solver.test_nets()[i], lock, &solver.test_passes(i)));
}

// The time of a call.
class SolverObject::Running {
 public:
  Running(SolverObject& object, const py::handle& self) : object_(object) {
    object.self_ = self;
    object.core_->running = &object;
    object.stop_ = false;
    object.looked_at_ = std::chrono::steady_clock::now();
    object.interrupted_.reset();
    object.tests_.clear();
    object.saved_ = {};
  }
  ~Running() {
    object_.self_ = {};
    object_.core_->running = nullptr;
  }
  Running(const Running&) = delete;

 private:
  SolverObject& object_;
};

void SolverObject::run(const py::handle& self, const char* call,
                       const std::function<void()>& work) {
  const NetLock::Hold hold(net_->lock());
  require(!core_->running, call,
          "() was called by a callback or reader of the solver while it runs: call it when the "
          "solver's step() or solve() has returned; stop() ends that");
  {
    const Running running(*this, self);
    const DeviceScope scope = enter(*core_->context);
    write_back();
    // With a callback each iteration is launched separately; otherwise a reader would get several
    // together, and its reaction to one would come too late.
    if (wants_steps_ && !std::exchange(steps_singly_, true))
      core_->solver->add_callback({[] {}, {}});
    struct ReadBack {  // after an exception, too
      SolverObject& object;
      ~ReadBack() { object.read_back(); }
    } const read_back{*this};
    const ReleaseGil release;
    work();
  }
  if (interrupted_) throw py::error_already_set(*std::exchange(interrupted_, std::nullopt));
}

void SolverObject::write_back() {
  net_->write_back();
  for (const auto& net : test_nets_) net->write_back();
}

void SolverObject::read_back() noexcept try {
  net_->read_back();
  for (const auto& net : test_nets_) net->read_back();
} catch (const std::exception&) {  // without memory: the next .data says so
}

Action SolverObject::action() {
  if (stop_.exchange(false) || ends_for_this_thread()) return Action::stop;
  if (std::chrono::steady_clock::now() - looked_at_ < kLookForSignals) return Action::none;
  const TakeGil lock;
  looked_at_ = std::chrono::steady_clock::now();
  if (PyErr_CheckSignals() == 0) return Action::none;
  interrupted_.emplace();
  return Action::stop;
}

void SolverObject::read(const Event& event) {
  if (const auto* test = std::get_if<event::TestResult>(&event)) tests_.push_back(*test);
  if (const auto* done = std::get_if<event::SnapshotDone>(&event)) saved_ = *done;
  const bool step = std::holds_alternative<event::Step>(event);
  const bool often = step || std::holds_alternative<event::TestBatch>(event);
  if (!wants_events_ || (often && !wants_steps_)) return;
  const TakeGil lock;
  py::dict told = dict_of(event);
  if (told.empty()) return;
  if (step) told["loss"] = core_->solver->loss();
  try {
    call_python(self_.attr("_on_event"), {told.ptr()});
  } catch (const py::error_already_set& error) {  // raised when the running iteration is done
    if (!interrupted_) interrupted_.emplace(error);
    stop_ = true;
  }
}

void SolverObject::set_wanted(bool events, bool steps) {
  wants_events_ = events;
  wants_steps_ = steps;
}

void SolverObject::call(const char* method) {
  if (!core_->running) return;
  const TakeGil lock;
  core_->running->read_back();
  call_python(core_->running->self_.attr(method), {});
  core_->running->write_back();
}

// The loop that goes through the solver's callbacks must not find more of them on the way.
void SolverObject::check_idle() const {
  require(!core_->running,
          "add_callback() was called while the solver runs: add all callbacks before step() or "
          "solve()");
}

void SolverObject::call_on_start() {
  if (calls_on_start_) return;
  check_idle();
  calls_on_start_ = true;
  core_->solver->add_callback({[this] { call("_on_start"); }, {}});
}

void SolverObject::call_on_gradients_ready() {
  if (calls_on_gradients_ready_) return;
  check_idle();
  calls_on_gradients_ready_ = true;
  core_->solver->add_callback({{}, [this] { call("_on_gradients_ready"); }});
}

}  // namespace crema::python
