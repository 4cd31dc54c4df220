// What a training does when an output of its tests gets no better: early_stop, and lr_policy
// "plateau" with plateau_test.
#include "solver/rates/rates.h"
#include "solver/solver.h"
#include "solver/test/class_metrics.h"
#include "solver/test/test_watch.h"

namespace crema {

void Solver::make_watches() {
  const SolverParameter& solver = file_.solver;
  const auto watched = [&](WatchedOutput::For purpose) {
    return std::make_unique<WatchedOutput>(file_, purpose, test_nets_, test_numbers_,
                                           metric_names());
  };
  if (solver.has_keep_best()) keep_best_ = watched(WatchedOutput::For::keep_best);
  if (solver.has_early_stop()) {
    require(solver.early_stop().tests() > 0, file_.where("early_stop.tests"),
            ": early_stop: tests is ", solver.early_stop().tests(), ", it must be at least 1");
    early_stop_ = watched(WatchedOutput::For::early_stop);
  }
  if (!solver.has_plateau_test()) return;
  require(solver.lr_policy() == "plateau", file_.where("plateau_test"),
          ": plateau_test needs lr_policy: \"plateau\", but it is \"", solver.lr_policy(), "\"");
  plateau_test_ = watched(WatchedOutput::For::plateau_test);
}

std::vector<std::vector<std::string>> Solver::metric_names() const {
  std::vector<std::vector<std::string>> names;
  for (const auto& metrics : test_metrics_)
    names.push_back(metrics ? metrics->names() : std::vector<std::string>());
  return names;
}

// A file that cannot be written ends no training.
void Solver::send_confusion(size_t net) {
  const int id = test_numbers_[net];
  const std::string& prefix = file_.solver.snapshot_prefix();
  const std::string csv =
      cat(prefix, prefix.empty() ? "" : "_", "confusion", id > 0 ? cat("_", id) : "", ".csv");
  try {
    std::optional<event::Confusion> confusion = test_metrics_[net]->confusion(csv);
    if (!confusion) return;
    confusion->iteration = iteration_;
    confusion->net = id;
    send_(*confusion);
  } catch (const Error& error) {
    send_(event::Warning{error.what()});
  }
}

// early_stop itself ends the training after the tests of all nets.
void Solver::observe_test(int number, const std::vector<OutputValue>& results) {
  keep_if_best(number, results);
  if (early_stop_) early_stop_->observe(number, results);
  if (plateau_test_ && rates_->heeds_tests(iteration_) && plateau_test_->observe(number, results) &&
      rates_->observe_tests(plateau_test_->tests_since_best()))
    plateau_test_->wait_again();
}

}  // namespace crema
