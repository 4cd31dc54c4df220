#include "solver/snapshot/snapshots.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "solver/iteration/optimizer.h"
#include "solver/ranks/ranks.h"
#include "solver/test/test_watch.h"

namespace crema {
namespace {

double minutes_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count() / 60;
}

}  // namespace

Snapshots::Snapshots(Run run) : run_(std::move(run)), writer_(run_.context.rank() == 0) {}

void Snapshots::start_clock() {
  if (began_at_) return;
  began_at_ = tried_at_ = Clock::now();
}

bool Snapshots::regular_after(int64_t updates) const {
  const SolverParameter& solver = run_.file.solver;
  return falls_due(updates, solver.snapshot(), solver.snapshot_epoch(), run_.epoch);
}

bool Snapshots::due(int64_t iteration) const {
  const float minutes = run_.file.solver.snapshot_minutes();
  return regular_after(iteration) || (minutes > 0 && minutes_since(tried_at_) >= minutes);
}

bool Snapshots::time_is_up(int64_t iteration) {
  const float most = run_.file.solver.max_minutes();
  if (most <= 0 || minutes_since(*began_at_) < most) return false;
  run_.send(event::Debug{cat("Stopping after ", iteration, " iterations: max_minutes is ", most)});
  return true;
}

void Snapshots::write(int64_t iteration) {
  try {
    begin(iteration);
  } catch (const RankLost&) {
    throw;
  } catch (const DeviceLost&) {
    throw;
  } catch (const Diverged&) {
    throw;  // all ranks may go back
  } catch (const Error& error) {
    if (run_.context.rank() > 0) throw RankLost(error.what(), true);  // rank 0 says so
    throw;
  }
  const WrittenSnapshot written = *writer_.wait();
  if (!written.error.empty()) fail(written.error);
  report(written);
}

void Snapshots::begin_or_log(int64_t iteration) {
  try {
    begin(iteration);
  } catch (const DeviceLost&) {
    throw;
  } catch (const RankLost&) {
    throw;
  } catch (const Diverged&) {
    throw;
  } catch (const std::exception& error) {
    run_.send(event::SnapshotFailed{iteration, error.what()});
  }
}

void Snapshots::begin(int64_t iteration) {
  const RankPause pause(run_.context);  // copying and hashing the weights takes what it takes
  finish();
  failed_ = true;  // until it is there
  tried_at_ = Clock::now();
  run_.read_losses(iteration);
  average_statistics(run_.net);
  compare_weights(run_.net, iteration);
  SnapshotJob snapshot = job(iteration);
  if (!agreed(run_.context, writer_.copy().finite())) run_.not_finite();
  using Part = event::Snapshot::Part;
  run_.send(event::Snapshot{iteration, Part::weights, snapshot.hdf5, snapshot.files.weights});
  if (!snapshot.files.state.empty())
    run_.send(event::Snapshot{iteration, Part::state, snapshot.hdf5, snapshot.files.state});
  writer_.start(std::move(snapshot));
}

SnapshotJob Snapshots::job(int64_t iteration) {
  const SolverParameter& solver = run_.file.solver;
  SnapshotJob job;
  job.iteration = iteration;
  job.files = snapshot_files(solver, iteration);
  job.hdf5 = solver.snapshot_format() == SolverParameter::HDF5;
  if (!run_.optimizer.averages()) job.files.average.clear();
  if (!solver.snapshot_include_state()) job.files.state.clear();
  const TrainingCopy::Parts parts = {.gradients = solver.snapshot_diff(),
                                     .average = true,
                                     .state = solver.snapshot_include_state()};
  check_room(snapshot_bytes(run_.net, run_.optimizer, parts, job.hdf5));
  copy(parts);
  if (run_.context.rank() > 0 || !parts.state) return job;
  run_.store(&job.state);
  job.state.set_learned_net(job.files.weights);
  if (solver.keep_last() > 0) {
    for (const auto& kept : kept_) job.state.add_kept_snapshots(kept.first);
    job.state.add_kept_snapshots(iteration);
  }
  return job;
}

void Snapshots::copy(const TrainingCopy::Parts& parts) {
  if (run_.context.rank() > 0) {
    TrainingCopy::help_to_take(run_.optimizer, parts);
  } else {
    writer_.copy().take(run_.net, run_.optimizer, parts);
  }
}

// Rank 0's disk; what it lacks is an Error on all ranks.
void Snapshots::check_room(uint64_t bytes) {
  std::string problem;
  try {
    if (run_.context.rank() == 0) check_snapshot_room(run_.file.solver, bytes);
  } catch (const Error& error) {
    problem = error.what();
  }
  problem = of_rank_0(run_.context, problem);
  if (!problem.empty()) fail(problem);
}

void Snapshots::keep_best(int64_t iteration, const WatchedOutput& watched) {
  const SolverParameter& solver = run_.file.solver;
  SnapshotJob job;
  job.iteration = iteration;
  job.hdf5 = solver.snapshot_format() == SolverParameter::HDF5;
  job.files.weights = cat(solver.snapshot_prefix(), "_best.caffemodel", job.hdf5 ? ".h5" : "");
  job.of_best = cat("Best test so far: ", watched.output(), " = ", watched.best(), " (iteration ",
                    iteration, "); weights in ", job.files.weights);
  finish();
  try {
    check_room(snapshot_bytes(run_.net, run_.optimizer, {}, job.hdf5));
    copy({});
    writer_.start(std::move(job));
  } catch (const DeviceLost&) {
    throw;
  } catch (const RankLost&) {
    throw;
  } catch (const std::exception& error) {
    report({.of_best = "best", .error = error.what()});
  }
}

void Snapshots::finish() {
  const RankPause pause(run_.context);  // a disk may be slow
  if (const auto written = writer_.wait()) report(*written);
}

void Snapshots::poll() {
  if (const auto written = writer_.take_if_done()) report(*written);
}

void Snapshots::report(const WrittenSnapshot& written) {
  if (!written.of_best.empty()) {
    if (written.error.empty()) return run_.send(event::Debug{written.of_best});
    return run_.send(
        event::Warning{cat("the weights of the best test so far are not kept: ", written.error)});
  }
  if (!written.error.empty())
    return run_.send(event::SnapshotFailed{written.iteration, written.error});
  failed_ = false;
  written_iteration_ = written.iteration;
  if (!written.files.state.empty()) {
    last_state_ = written.files.state;
    last_state_iteration_ = written.iteration;
  }
  run_.send(event::SnapshotDone{written.iteration, written.files.weights, written.files.state,
                                written.hash, written.hash_of_average});
  if (run_.context.rank() > 0) return;
  if (run_.file.solver.keep_last() > 0) kept_.emplace_back(written.iteration, written.files);
  remove_old();
}

// Only what this run has written. Files that are gone already do no harm.
void Snapshots::remove_old() {
  const SolverParameter& solver = run_.file.solver;
  if (solver.keep_last() == 0) return;
  const auto first_of_last =
      kept_.end() - std::min<std::ptrdiff_t>(std::ssize(kept_), solver.keep_last());
  const auto goes = std::stable_partition(kept_.begin(), first_of_last, [&](const auto& entry) {
    return solver.keep_every() > 0 && entry.first % solver.keep_every() == 0;
  });
  const std::vector<std::pair<int64_t, SnapshotFiles>> old(goes, first_of_last);
  kept_.erase(goes, first_of_last);
  for (const auto& [number, files] : old) {
    // After going back an iteration is written again: the files are then those of a newer entry.
    const auto same = [&, &name = files.weights](const auto& entry) {
      return entry.second.weights == name;
    };
    if (std::any_of(kept_.begin(), kept_.end(), same)) continue;
    // The state first: a state on disk always has its weights.
    bool removed = false;
    for (const std::string& path : {files.state, files.weights, files.average}) {
      if (!path.empty()) removed = unlink(path.c_str()) == 0 || removed;
    }
    if (!removed) continue;
    run_.send(event::Debug{cat("Removed the snapshot of iteration ", number,
                               " (keep_last: ", solver.keep_last(), ")")});
  }
}

void Snapshots::resumed_from(const SolverState& state, const std::string& path) {
  last_state_ = path;
  last_state_iteration_ = state.iter();
  // Snapshots that an earlier start of this run wrote. Only if `path` is one of them: under another
  // prefix the same iterations may be another run's.
  if (run_.context.rank() > 0 || !kept_.empty()) return;  // not empty: it goes back and has more
  const std::string here = snapshot_files(run_.file.solver, state.iter()).state;
  if (!file_exists(here) || !std::filesystem::equivalent(path, here)) return;
  for (const int64_t iteration : state.kept_snapshots())
    kept_.emplace_back(iteration, snapshot_files(run_.file.solver, iteration));
  // As after that snapshot was written: the run may have been killed just before.
  remove_old();
}

std::string Snapshots::resume_hint() const {
  if (last_state_.empty()) {
    if (const int every = run_.file.solver.snapshot(); every > 0)
      return cat("No snapshot was written before: the solver writes one every ", every,
                 every == 1 ? " iteration" : " iterations");
    return "No snapshot was written before (`snapshot: 1000` in the solver writes one every 1000 "
           "iterations)";
  }
  const std::string command =
      run_.resume_command ? run_.resume_command(last_state_) : "-snapshot " + last_state_;
  if (command.empty()) return "";  // these files do not stay
  return cat("The last snapshot is of iteration ", last_state_iteration_,
             ". Go on from there with: ", command);
}

}  // namespace crema
