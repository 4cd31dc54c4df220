#include "solver/test/test_watch.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "proto/solver.pb.h"

namespace crema {
namespace {

constexpr int kPlaces = 3;
// As the best value: nothing had this place when the state was written.
constexpr float kUnused = std::numeric_limits<float>::quiet_NaN();

struct Field {
  const char* watch;  // its path in the solver
  const char* whole;  // the field that holds it
};

Field field_of(WatchedOutput::For purpose) {
  switch (purpose) {
    case WatchedOutput::For::keep_best:
      return {"keep_best", "keep_best"};
    case WatchedOutput::For::early_stop:
      return {"early_stop.watch", "early_stop"};
    case WatchedOutput::For::plateau_test:
      return {"plateau_test", "plateau_test"};
  }
  return {"", ""};
}

const TestWatch& watch_of(const SolverParameter& solver, WatchedOutput::For purpose) {
  switch (purpose) {
    case WatchedOutput::For::keep_best:
      return solver.keep_best();
    case WatchedOutput::For::early_stop:
      return solver.early_stop().watch();
    case WatchedOutput::For::plateau_test:
      break;
  }
  return solver.plateau_test();
}

}  // namespace

bool named_like_a_loss(const std::string& output) {
  const std::string name = lower_case(output);
  return name.find("loss") != std::string::npos || name.find("error") != std::string::npos;
}

WatchedOutput::WatchedOutput(const SolverFile& file, For purpose,
                             const std::vector<std::unique_ptr<Net>>& nets,
                             const std::vector<int>& numbers,
                             const std::vector<std::vector<std::string>>& metrics)
    : place_(static_cast<int>(purpose)) {
  const auto [path, whole] = field_of(purpose);
  const TestWatch& watch = watch_of(file.solver, purpose);
  const auto where = [&, path = path, whole = whole](const std::string& field) {
    // What is not written has no position of its own.
    const bool written = field == "output"     ? watch.has_output()
                         : field == "test_net" ? watch.has_test_net()
                                               : watch.has_min_change();
    return file.where(written ? cat(path, ".", field) : whole);
  };
  require(
      !nets.empty(), file.where(whole), ": ", whole,
      " follows an output of the tests, but nothing is tested: it needs a test net and test_iter");
  const auto at = std::find(numbers.begin(), numbers.end(), watch.test_net());
  require(at != numbers.end(), where("test_net"), ": ", whole, " follows test net #",
          watch.test_net(), ", which does not exist or has no test_iter; there are ", nets.size(),
          " test nets, counted from 0");
  require(watch.min_change() >= 0, where("min_change"), ": min_change is ", watch.min_change(),
          ", it must be at least 0");
  const std::vector<Net::Output> outputs = nets[at - numbers.begin()]->outputs();
  require(!outputs.empty(), file.where(whole), ": test net #", watch.test_net(),
          " has no outputs for ", whole, " to follow");
  std::vector<std::string> names;
  for (const Net::Output& output : outputs) names.push_back(output.blob);
  if (!metrics.empty()) {
    const std::vector<std::string>& more = metrics[at - numbers.begin()];
    names.insert(names.end(), more.begin(), more.end());
  }
  const std::string& wanted = watch.has_output() ? watch.output() : names[0];
  const auto found = std::find(names.begin(), names.end(), wanted);
  require(found != names.end(), where("output"), ": test net #", watch.test_net(),
          " has no output \"", wanted, "\"", did_you_mean(wanted, names), "; its outputs are ",
          join(names, ", "));
  test_net_ = watch.test_net();
  output_ = wanted;
  const size_t place = found - names.begin();
  const bool loss = place < outputs.size() &&
                    (outputs[place].loss_weight != 0 || named_like_a_loss(outputs[place].blob));
  larger_ = watch.better() == TestWatch::AUTO ? !loss : watch.better() == TestWatch::LARGER;
  min_change_ = watch.min_change();
  best_ = worst();
}

std::optional<bool> WatchedOutput::observe(int test_net, const std::vector<OutputValue>& results) {
  if (test_net != test_net_) return std::nullopt;
  const auto found = std::find_if(results.begin(), results.end(), [&](const OutputValue& result) {
    return result.name == output_;
  });
  if (found == results.end()) return std::nullopt;
  const bool better =
      larger_ ? found->value > best_ + min_change_ : found->value < best_ - min_change_;
  if (better) best_ = found->value;
  tests_ = better ? 0 : tests_ + 1;
  return better;
}

void WatchedOutput::store(SolverState* state) const {
  while (state->best_values_size() < kPlaces) {
    state->add_best_values(kUnused);
    state->add_tests_since_best(0);
  }
  state->set_best_values(place_, best_);
  state->set_tests_since_best(place_, tests_);
}

void WatchedOutput::restore(const SolverState& state, const std::string& path) {
  require(state.best_values_size() == state.tests_since_best_size(), path, ": holds ",
          state.best_values_size(), " best_values and ", state.tests_since_best_size(),
          " tests_since_best: the file is damaged");
  best_ = worst();
  tests_ = 0;
  if (place_ >= state.best_values_size() || std::isnan(state.best_values(place_))) return;
  require(state.tests_since_best(place_) >= 0, path, ": tests_since_best is ",
          state.tests_since_best(place_), ", it must be at least 0: the file is damaged");
  best_ = state.best_values(place_);
  tests_ = state.tests_since_best(place_);
}

}  // namespace crema
