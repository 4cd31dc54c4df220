// Which snapshots are taken by the clock, which stay, and the weights of the best test: keep_last,
// keep_every, keep_best, snapshot_minutes, max_minutes.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "solver/iteration/optimizer.h"
#include "solver/snapshot/snapshot_writer.h"
#include "solver/solver.h"
#include "solver/test/test_watch.h"

namespace crema {
namespace {

double minutes_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count() / 60;
}

}  // namespace

void check_kept_snapshots(const SolverFile& file) {
  const SolverParameter& solver = file.solver;
  const auto at_least_0 = [&](const char* field, auto value) {
    require(value >= 0, file.where(field), ": ", field, " is ", value, ", it must be at least 0");
  };
  at_least_0("keep_last", solver.keep_last());
  at_least_0("keep_every", solver.keep_every());
  at_least_0("snapshot_minutes", solver.snapshot_minutes());
  at_least_0("max_minutes", solver.max_minutes());
  require(
      solver.keep_every() == 0 || solver.keep_last() > 0, file.where("keep_every"),
      ": keep_every says which snapshots stay beside the newest ones, but keep_last is 0, which "
      "keeps all: set keep_last, or remove keep_every");
}

void Solver::start_clocks() {
  if (began_at_) return;
  began_at_ = snapshot_at_ = Clock::now();
}

bool Solver::snapshot_is_due() const {
  const SolverParameter& solver = file_.solver;
  if (regular_snapshot_after(iteration_)) return true;
  return solver.snapshot_minutes() > 0 && minutes_since(snapshot_at_) >= solver.snapshot_minutes();
}

bool Solver::time_is_up() {
  const float most = file_.solver.max_minutes();
  if (most <= 0 || minutes_since(*began_at_) < most) return false;
  send_(event::Debug{cat("Stopping after ", iteration_, " iterations: max_minutes is ", most)});
  return true;
}

std::vector<int64_t> Solver::kept_snapshots() const {
  std::vector<int64_t> kept;
  for (const auto& entry : written_) kept.push_back(entry.first);
  return kept;
}

// Snapshots of this run that an earlier start wrote. Only if `path` is one of them: under another
// prefix the same iterations may be another run's.
void Solver::restore_kept_snapshots(const SolverState& state, const std::string& path) {
  if (!written_.empty()) return;  // the run goes back and has more since
  const std::string here = snapshot_files(file_.solver, state.iter()).state;
  if (!file_exists(here) || !std::filesystem::equivalent(path, here)) return;
  for (const int64_t iteration : state.kept_snapshots())
    written_.emplace_back(iteration, snapshot_files(file_.solver, iteration));
}

// Only what this run has written. Files that are gone already do no harm.
void Solver::remove_old_snapshots(int64_t iteration, const SnapshotFiles& newest) {
  const SolverParameter& solver = file_.solver;
  if (solver.keep_last() == 0) return;
  written_.emplace_back(iteration, newest);
  const auto first_of_last =
      written_.end() - std::min<std::ptrdiff_t>(std::ssize(written_), solver.keep_last());
  const auto goes = std::stable_partition(written_.begin(), first_of_last, [&](const auto& entry) {
    return solver.keep_every() > 0 && entry.first % solver.keep_every() == 0;
  });
  const std::vector<std::pair<int64_t, SnapshotFiles>> old(goes, first_of_last);
  written_.erase(goes, first_of_last);
  for (const auto& [number, files] : old) {
    // After going back an iteration is written again: the files are then those of a newer entry.
    const auto same = [&, &name = files.weights](const auto& entry) {
      return entry.second.weights == name;
    };
    if (std::any_of(written_.begin(), written_.end(), same)) continue;
    // The state first: a state on disk always has its weights.
    for (const std::string& path : {files.state, files.weights, files.average}) {
      if (!path.empty()) unlink(path.c_str());
    }
    send_(event::Debug{cat("Removed the snapshot of iteration ", number,
                           " (keep_last: ", solver.keep_last(), ")")});
  }
}

// In a test, whose weights are those that the net has now (test_ema: the average). A disk that is
// full ends no training.
void Solver::keep_if_best(int number, const std::vector<OutputValue>& results) {
  if (!keep_best_ || !keep_best_->observe(number, results).value_or(false)) return;
  SnapshotJob job;
  job.iteration = iteration_;
  job.hdf5 = file_.solver.snapshot_format() == SolverParameter::HDF5;
  job.files.weights =
      cat(file_.solver.snapshot_prefix(), "_best.caffemodel", job.hdf5 ? ".h5" : "");
  job.of_best = cat("Best test so far: ", keep_best_->output(), " = ", keep_best_->best(),
                    " (iteration ", iteration_, "); weights in ", job.files.weights);
  finish_snapshot();
  try {
    check_room(snapshot_bytes(*net_, *optimizer_, {}, job.hdf5));
    if (context_.rank() == 0) {
      writer_->copy().take(*net_, *optimizer_, {});
    } else {
      TrainingCopy::help_to_take(*optimizer_, {});
    }
    writer_->start(std::move(job));
  } catch (const DeviceLost&) {
    throw;
  } catch (const RankLost&) {
    throw;
  } catch (const std::exception& error) {
    report({.of_best = "best", .error = error.what()});
  }
}

}  // namespace crema
