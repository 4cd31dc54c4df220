#include "tools/replay/recorded_run.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "device/context.h"
#include "proto/solver.pb.h"
#include "solver/fields/recorded_recipe.h"
#include "solver/readers/metrics_file.h"
#include "solver/snapshot/snapshot.h"
#include "solver/snapshot/state_file.h"
#include "tools/runs/run_record_file.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

std::string text_in(const RunRecordJson& record, const char* name) {
  const auto found = record.find(name);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

// Of the last start: a resume may have had others.
FlagValues flags_in(const RunRecordJson& record) {
  FlagValues flags;
  const auto found = record.find("flags");
  if (found == record.end() || !found->is_object()) return flags;
  for (const auto& [name, value] : found->items()) {
    if (value.is_string()) flags[name] = {value.get<std::string>()};
    if (!value.is_array()) continue;
    for (const auto& one : value) {
      if (one.is_string()) flags[name].push_back(one.get<std::string>());
    }
  }
  return flags;
}

}  // namespace

RecordedRun::RecordedRun(const std::string& folder)
    : folder_(fs::absolute(folder).lexically_normal().string()) {
  while (folder_.size() > 1 && folder_.back() == '/') folder_.pop_back();
  const std::string record_file = folder_ + "/run.json";
  require(file_exists(record_file), folder,
          ": has no run.json: expected the folder of a run, as `crema train -run` makes it");
  RunRecordJson record = read_run_record(record_file);
  if (const auto seed = record.find("seed"); seed != record.end() && seed->is_number_integer())
    seed_ = seed->get<int64_t>();
  if (const FlagValues first = flags_in(record); first.count("snapshot") > 0)
    begun_from_ = first.at("snapshot")[0];
  if (const auto later = record.find("resumptions"); later != record.end() && !later->empty()) {
    for (const auto& one : *later) {
      const auto at = one.is_object() ? one.find("iteration") : one.end();
      if (!one.is_object() || at == one.end() || !at->is_number_integer()) continue;
      const Resume resume{at->get<int64_t>(), text_in(one, "command")};
      std::erase_if(resumes_, [&](const Resume& old) { return old.iteration > resume.iteration; });
      resumes_.push_back(resume);
    }
    for (const char* name : {"flags", "version", "built_with", "device", "ranks"}) {
      const auto found = later->back().find(name);
      if (found != later->back().end()) record[name] = *found;
    }
  }
  require(record.value("ranks", 1) == 1, folder, ": this run had ", record.value("ranks", 1),
          " ranks; runs of one rank can be computed again");
  flags_ = flags_in(record);
  require(flags_.count("assume") == 0, folder,
          ": this run had random data (-assume), which are not recorded");
  version_ = text_in(record, "version");
  built_with_ = text_in(record, "built_with");
  device_ = text_in(record, "device");
  host_ = text_in(record, "host");
  started_in_ = text_in(record, "folder");
  if (!folder_exists(started_in_)) started_in_.clear();

  if (const std::optional<RunLock> lock = read_run_lock(folder_ + "/run.lock")) {
    first_lock_ = *lock;
    lock_ = last_start(*lock);
    RunLock before = *lock;
    for (const RunLock& later : lock->value("resumed", RunLock::array())) {
      for (const std::string& difference : lock_differences(before, later)) {
        if (!starts_with(difference, "the weights"))  // that is what training is for
          resumed_with_.push_back(
              cat("resumed in iteration ", later.value("iteration", 0), ": ", difference));
      }
      before = later;
    }
  }

  const std::string iterations = folder_ + "/iterations.csv";
  require(
      file_exists(iterations), folder,
      ": has no iterations.csv, which runs have had since version 0.1.0: what is computed again "
      "could not be compared");
  iterations_ = read_iterations(iterations);
  double seconds = 0, speeds = 0;
  const auto runs = [&]() -> std::vector<Run> {
    try {
      return read_runs(folder_ + "/metrics.jsonl");
    } catch (const Error& error) {
      notes_.push_back(
          cat(error.what(), "; whether the run went back after it diverged is unknown"));
      return {};
    }
  }();
  std::set<int64_t> written;  // snapshots that no resume outdates
  for (const Run& run : runs) {
    for (const Metric& metric : run.metrics) {
      // What it has gone back from since its snapshot is no part of a resumed run.
      if (metric.kind == "start")
        std::erase_if(rollbacks_, [&](const Rollback& b) { return b.to >= metric.iteration; });
      if (metric.kind == "start" || metric.kind == "snapshot") written.insert(metric.iteration);
      for (const auto& [name, value] : metric.values) {
        if (metric.kind == "rollback" && name == "from")
          rollbacks_.push_back({static_cast<int64_t>(value), metric.iteration});
        if (metric.kind == "train" && name == "iterations_per_second" && value > 0) {
          seconds += 1 / value;
          ++speeds;
        }
      }
    }
  }
  if (seconds > 0) speed_ = speeds / seconds;
  const std::string snapshots = folder_ + "/snapshots";
  for (const std::string& name : list_folder_if_exists(snapshots)) {
    const int64_t iteration = iteration_of_state(name);
    if (iteration >= 0 && (runs.empty() || written.count(iteration) > 0))
      states_.push_back({cat(snapshots, "/", name), iteration});
  }
  std::sort(states_.begin(), states_.end(),
            [](const Start& one, const Start& other) { return one.iteration < other.iteration; });
}

FlagValues RecordedRun::flags(const FlagValues& given, std::vector<std::string>* notes) const {
  FlagValues all = flags_;
  if (all.count("gpu") > 0 && gpu_count() == 0) {
    notes->push_back("the run was on a GPU, and this machine has none");
    all.erase("gpu");
  }
  for (const auto& [name, values] : given) all[name] = values;
  return all;
}

RecordedRun::Start RecordedRun::start_for(int64_t iteration) const {
  require(!iterations_.losses.empty(), folder_,
          "/iterations.csv: has no iterations: the run ended before its first one");
  require(iteration >= 0 && iteration < iterations_.end(), folder_, ": has no iteration ",
          iteration, ": its last one is ", iterations_.end() - 1);
  return state_for(iteration);
}

RecordedRun::Start RecordedRun::state_for(int64_t iterations) const {
  require(iterations >= 0 && iterations <= iterations_.end(), folder_, ": has done ",
          iterations_.end(), " iterations, and not ", iterations);
  Start start;
  for (const Start& state : states_) {
    if (state.iteration <= iterations) start = state;
  }
  if (!start.state.empty() || iterations_.first == 0) return start;
  const std::string begun_from = (fs::path(started_in_) / begun_from_).string();
  if (iterations >= iterations_.first && iteration_of_state(begun_from) == iterations_.first &&
      file_exists(begun_from))
    return {begun_from, iterations_.first};
  fail(folder_, ": begins with iteration ", iterations_.first,
       ", and has no snapshot that is not after iteration ", iterations);
}

RecordedRun::Start RecordedRun::newest_state() const {
  require(!states_.empty(), folder_, ": has no snapshot; name an iteration, DIR@N");
  return states_.back();
}

std::vector<RecordedRun::Rollback> RecordedRun::rollbacks(const Start& start,
                                                          int64_t iteration) const {
  std::vector<Rollback> all;
  for (const Rollback& back : rollbacks_) {
    if (back.to >= start.iteration && back.to <= iteration) all.push_back(back);
  }
  return all;
}

// What the snapshot that was written next has recorded. "": none was, or the run was resumed before it, and
// the solver's file holds.
std::string RecordedRun::recipe_of(int64_t iteration) const {
  const auto next = std::find_if(states_.begin(), states_.end(),
                                 [&](const Start& state) { return state.iteration > iteration; });
  if (resumes_.empty() || next == states_.end()) return "";
  for (const Resume& resume : resumes_) {
    if (resume.iteration > iteration && resume.iteration < next->iteration) return "";
  }
  return read_solver_state(next->state).recipe();
}

RecordedRun::Change RecordedRun::next_change(int64_t iteration) const {
  if (resumes_.empty()) return {iterations_.end()};
  const std::string now = recorded_recipe(solver("", iteration).solver);
  for (const Resume& resume : resumes_) {
    if (resume.iteration <= iteration) continue;
    const std::vector<std::string> fields = changes_since(now, solver("", resume.iteration).solver);
    if (!fields.empty()) return {resume.iteration, fields};
  }
  return {iterations_.end()};
}

std::vector<std::string> RecordedRun::resumes_after(int64_t iteration) const {
  std::vector<std::string> found;
  for (const Resume& resume : resumes_) {
    if (resume.iteration <= iteration) continue;
    found.push_back(cat("from iteration ", resume.iteration, " on the run was resumed, with `",
                        resume.command, "`; the net and the flags before it are not recorded"));
  }
  return found;
}

SolverFile RecordedRun::written_solver(std::shared_ptr<Settings> settings) const {
  SolverFile file = read_solver_file(folder_ + "/solver.prototxt", std::move(settings));
  SolverParameter& solver = file.solver;
  // The folder may have been moved since.
  const auto here = [&](const std::string& path) {
    const std::string own = folder_ + "/" + fs::path(path).filename().string();
    require(file_exists(own), own, ": is missing: it is the net of this run");
    return own;
  };
  if (solver.has_net()) solver.set_net(here(solver.net()));
  if (solver.has_train_net()) solver.set_train_net(here(solver.train_net()));
  return file;
}

SolverFile RecordedRun::solver(const std::string& prefix, int64_t iteration) const {
  SolverFile file = written_solver();
  SolverParameter& solver = file.solver;
  if (const std::string recipe = recipe_of(iteration); !recipe.empty()) use_recipe(recipe, &solver);
  const bool at_first = !resumes_.empty() && iteration < resumes_[0].iteration;
  if (seed_ && (at_first || !solver.has_random_seed())) solver.set_random_seed(*seed_);
  const auto clear = [&](const std::vector<const char*>& fields) {
    for (const char* field : fields)
      solver.GetReflection()->ClearField(&solver,
                                         SolverParameter::descriptor()->FindFieldByName(field));
  };
  clear({"snapshot", "snapshot_epoch", "snapshot_minutes", "max_minutes", "keep_best", "keep_last",
         "keep_every", "early_stop", "epoch_log", "snapshot_format", "snapshot_include_weights",
         "snapshot_include_state", "snapshot_diff"});
  if (!solver.has_plateau_test()) {  // else the rate follows from tests
    clear({"test_net", "test_net_param", "test_iter", "test_interval", "test_interval_epoch",
           "test_state", "test_epoch", "test_initialization"});
  }
  solver.set_snapshot_prefix(prefix);
  return file;
}

std::vector<std::string> RecordedRun::differences(const RunLock& here) const {
  if (lock_.is_object()) {
    RunLock now = lock_of_recipe(written_solver());
    now.erase("seed");  // the file has it because of the run
    now.update(here);
    now["data"] = lock_of_data(lock_.value("data", RunLock()));
    std::vector<std::string> found = lock_differences(lock_, now);
    found.insert(found.end(), resumed_with_.begin(), resumed_with_.end());
    return found;
  }
  const RunLock was = {{"machine", {{"device", device_}, {"host", host_}}},
                       {"program", {{"version", version_}, {"built_with", built_with_}}}};
  return lock_differences(was, here);
}

std::vector<std::string> RecordedRun::data_differences() const {
  if (!lock_.is_object() || !lock_.contains("data")) return {};
  return lock_differences({{"data", lock_["data"]}}, {{"data", lock_of_data(lock_["data"])}});
}

std::string RecordedRun::weights_difference(const std::string& hash) const {
  if (!first_lock_.is_object() || !first_lock_.contains("weights")) return "";
  const std::vector<std::string> found =
      lock_differences({{"weights", first_lock_["weights"]}}, {{"weights", {{"hash", hash}}}});
  return found.empty() ? "" : found[0];
}

}  // namespace crema
