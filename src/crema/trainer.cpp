#include <algorithm>

#include "base/error.h"
#include "crema.h"
#include "crema/session.h"
#include "net/prototxt/net_input.h"
#include "solver/solver.h"

namespace crema {

namespace {

// Collects the results of tests and snapshots.
class Results : public EventReader {
 public:
  void read(const Event& event) override {
    const auto* const test = std::get_if<event::TestResult>(&event);
    if (test && collects_tests) {
      tests.push_back({test->loss, {}});
      for (const OutputValue& output : test->outputs)
        tests.back().outputs.push_back({output.name, output.value, output.loss_weight});
    } else if (const auto* done = std::get_if<event::SnapshotDone>(&event)) {
      saved = {done->weights, done->state};
    }
  }

  bool collects_tests = false;  // not those that fall due while the net is trained
  std::vector<TestResult> tests;
  SavedFiles saved;
};

SolverFile read_solver(const std::string& path, Log& log) {
  SolverFile file = read_solver_file(path);
  write_notes(log, file.notes);
  return file;
}

SolverOptions solver_options(const TrainerOptions& options, const Context& context,
                             const SolverFile& file, EventReader* reader) {
  SolverOptions all;
  all.weights = options.weights;
  all.weights_mode = weights_mode_named(options.weights_mode);
  all.snapshot = options.snapshot;
  all.level = options.level;
  all.stages = options.stages;
  all.fills_inputs = true;
  all.readers = {reader};
  all.net.precision = precision_for(
      context, options.precision.empty() ? file.solver.precision() : options.precision);
  all.resume_command = [](const std::string& state) { return cat("snapshot = \"", state, "\""); };
  return all;
}

}  // namespace

struct Trainer::Impl {
  Impl(const SolverFile& file, const TrainerOptions& options, std::unique_ptr<Session> made)
      : session(std::move(made)),
        solver(session->context, file, solver_options(options, session->context, file, &results)),
        inputs(solver.net()) {
    for (const auto& net : solver.test_nets()) test_inputs.emplace_back(*net);
  }

  CallerInputs& of_test(int net) {
    const int count = static_cast<int>(test_inputs.size());
    require(net >= 0 && net < count, "there is no test net ", net, ": the solver has ", count,
            ", numbered from 0");
    return test_inputs[net];
  }
  void check_test_inputs() const {
    for (const CallerInputs& test : test_inputs) test.check();
  }
  void check_inputs() const {
    inputs.check();
    check_test_inputs();
  }

  std::unique_ptr<Session> session;
  Results results;
  Solver solver;
  CallerInputs inputs;
  std::vector<CallerInputs> test_inputs;
};

Trainer::Trainer(const std::string& solver_file, TrainerOptions options) {
  const DeviceScope scope = device_scope(options.device);
  auto session = std::make_unique<Session>(options.device, options.deterministic,
                                           CallbackLog(std::move(options.log)));
  const SolverFile file = read_solver(solver_file, session->log);
  impl_ = std::make_unique<Impl>(file, options, std::move(session));
}

Trainer::~Trainer() {
  if (!impl_) return;
  const DeviceScope scope = impl_->session->enter();
  impl_.reset();
}

Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

void Trainer::step(int64_t iterations) {
  require(iterations >= 0, "step(", iterations, "): expected the number of iterations to train");
  const DeviceScope scope = impl_->session->enter();
  impl_->check_inputs();
  impl_->solver.step(iterations);
}

void Trainer::solve() {
  const DeviceScope scope = impl_->session->enter();
  impl_->check_inputs();
  impl_->solver.solve();
}

int64_t Trainer::iteration() const { return impl_->solver.iteration(); }
int64_t Trainer::max_iterations() const { return impl_->solver.parameter().max_iter(); }
double Trainer::loss() const { return impl_->solver.loss(); }

double Trainer::learning_rate() const {
  const DeviceScope scope = impl_->session->enter();
  return impl_->solver.rate();
}

std::vector<TestResult> Trainer::test() {
  const DeviceScope scope = impl_->session->enter();
  impl_->check_test_inputs();
  Results& results = impl_->results;
  results.tests.clear();
  results.collects_tests = true;
  impl_->solver.test_all();
  results.collects_tests = false;
  return std::move(results.tests);
}

SavedFiles Trainer::snapshot() {
  const DeviceScope scope = impl_->session->enter();
  impl_->solver.snapshot();
  return impl_->results.saved;
}

std::vector<BlobInfo> Trainer::inputs() const {
  const DeviceScope scope = impl_->session->enter();
  return impl_->inputs.list();
}

void Trainer::set_input(const std::string& name, std::span<const float> values) {
  const DeviceScope scope = impl_->session->enter();
  impl_->inputs.set(name, values);
}

std::vector<BlobInfo> Trainer::test_inputs(int net) const {
  const DeviceScope scope = impl_->session->enter();
  return impl_->of_test(net).list();
}

void Trainer::set_test_input(int net, const std::string& name, std::span<const float> values) {
  const DeviceScope scope = impl_->session->enter();
  impl_->of_test(net).set(name, values);
}

std::vector<ParameterInfo> Trainer::parameters() const {
  return list_parameters(impl_->solver.net());
}

std::vector<float> Trainer::parameter(const std::string& layer, int index) const {
  const DeviceScope scope = impl_->session->enter();
  return read_parameter(impl_->solver.net(), layer, index);
}

void Trainer::set_parameter(const std::string& layer, int index, std::span<const float> values) {
  const DeviceScope scope = impl_->session->enter();
  write_parameter(impl_->solver.net(), layer, index, values);
}

}  // namespace crema
