#include "tools/tune/sweep_runs.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "device/host_limits.h"
#include "tools/signals.h"

namespace crema {

namespace {

constexpr auto pause_after_look = std::chrono::milliseconds(20);

}  // namespace

void SweepRuns::run() {
  Signals signals({Action::stop, Action::stop, Action::stop}, [](int, Action) {});
  save();
  for (const size_t index : chosen_) {
    if (record_.runs[index].state == SweepRun::State::done) continue;
    while (running_.size() >= static_cast<size_t>(places_.jobs) && !stopped_) look(signals);
    if (stopped_) break;
    start(index);
  }
  while (!running_.empty()) look(signals);
  log_.show_status("");
}

std::vector<SweepResult> SweepRuns::results() const {
  std::vector<SweepResult> results;
  for (const size_t index : chosen_)
    results.push_back(result_of(record_.runs[index], folder_, score_));
  return results;
}

// The lowest number that no running training has: its card, so that none is taken twice.
int SweepRuns::free_slot() const {
  int slot = 0;
  while (std::any_of(running_.begin(), running_.end(),
                     [slot](const auto& entry) { return entry.second.slot == slot; }))
    ++slot;
  return slot;
}

void SweepRuns::start(size_t index) {
  SweepRun& run = record_.runs[index];
  const int slot = free_slot();
  std::vector<std::string> words = {"train", "-solver=" + record_.solver,
                                    cat("-run=", folder_, "/", run.name), "-snapshot=auto"};
  words.insert(words.end(), record_.flags.begin(), record_.flags.end());
  for (const std::string& setting : run.settings) words.push_back("-set=" + setting);
  std::vector<std::string> environment;
  if (!places_.gpus.empty()) {
    words.push_back(cat("-gpu=", places_.gpus[slot % places_.gpus.size()]));
  } else if (places_.jobs > 1 && !std::getenv("OMP_NUM_THREADS")) {
    environment.push_back(cat("OMP_NUM_THREADS=", std::max(1, usable_processors() / places_.jobs)));
  }
  log_.info(cat("Run ", run.name, " begins"));
  running_[index] = {slot, std::make_unique<ChildProcess>(words, environment)};
  run.state = SweepRun::State::running;
  run.message.clear();
  save();
}

// One look at all of them.
void SweepRuns::look(Signals& signals) {
  if (signals.action() != Action::none && !stopped_) {
    stopped_ = true;
    log_.info("Stopping; the current runs write their snapshots.");
    for (auto& [index, running] : running_) running.process->terminate();
  }
  for (auto at = running_.begin(); at != running_.end();) {
    const auto code = at->second.process->ended();
    if (!code) {
      ++at;
      continue;
    }
    finish(record_.runs[at->first], *code, at->second.process->message());
    at = running_.erase(at);
    save();
  }
  show();
  std::this_thread::sleep_for(pause_after_look);
}

void SweepRuns::finish(SweepRun& run, int code, const std::string& message) {
  if (stopped_) {
    run.state = SweepRun::State::stopped;
    log_.info(cat("Run ", run.name, " was stopped"));
  } else if (code == 0) {
    run.state = SweepRun::State::done;
    const std::vector<SweepValue> values = result_of(run, folder_, score_).values;
    log_.info(cat("Run ", run.name, " is done",
                  values.empty() ? "" : cat(": ", values[0].name, " ", values[0].last)));
  } else {
    run.state = SweepRun::State::failed;
    run.message = message;
    log_.warning(cat("Run ", run.name, " failed: ", message));
  }
}

void SweepRuns::show() {
  if (!log_.has_terminal()) return;
  std::map<SweepRun::State, int> counts;
  for (const size_t index : chosen_) ++counts[record_.runs[index].state];
  std::vector<std::string> parts;
  for (const auto& [state, count] : counts) parts.push_back(cat(count, " ", name_of(state)));
  log_.show_status("runs: " + join(parts, ", "));
}

}  // namespace crema
