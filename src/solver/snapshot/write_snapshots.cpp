// How the training loop writes a snapshot: it waits for a copy only, and a thread writes the files
// from that (solver/snapshot/snapshot_writer). What has become of them is reported between two iterations.
#include "base/error.h"
#include "net/records.h"
#include "solver/events/checksum.h"
#include "solver/fields/recorded_recipe.h"
#include "solver/iteration/gpu_iteration.h"
#include "solver/iteration/optimizer.h"
#include "solver/ranks/ranks.h"
#include "solver/rates/rates.h"
#include "solver/snapshot/snapshot_writer.h"
#include "solver/solver.h"

namespace crema {

void Solver::snapshot() {
  try {
    start_snapshot();
  } catch (const RankLost&) {
    throw;
  } catch (const DeviceLost&) {
    throw;
  } catch (const Diverged&) {
    throw;  // run() may go back, on all ranks
  } catch (const Error& error) {
    if (context_.rank() > 0) throw RankLost(error.what(), true);  // rank 0 says so
    throw;
  }
  const WrittenSnapshot written = *writer_->wait();
  if (!written.error.empty()) fail(written.error);
  report(written);
}

void Solver::snapshot_or_log() {
  try {
    start_snapshot();
  } catch (const DeviceLost&) {
    throw;
  } catch (const RankLost&) {
    throw;
  } catch (const Diverged&) {
    throw;
  } catch (const std::exception& error) {
    send_(event::SnapshotFailed{iteration_, error.what()});
  }
}

void Solver::start_snapshot() {
  const RankPause pause(context_);  // copying and hashing the weights takes what it takes
  finish_snapshot();
  snapshot_failed_ = true;  // until it is there
  snapshot_at_ = Clock::now();
  read_losses(iteration_ - 1);
  average_statistics(*net_);
  compare_weights(*net_, iteration_);
  SnapshotJob job = snapshot_job();
  if (!agreed(writer_->copy().finite())) check_weights();
  using Part = event::Snapshot::Part;
  send_(event::Snapshot{iteration_, Part::weights, job.hdf5, job.files.weights});
  if (!job.files.state.empty())
    send_(event::Snapshot{iteration_, Part::state, job.hdf5, job.files.state});
  writer_->start(std::move(job));
}

SnapshotJob Solver::snapshot_job() {
  const SolverParameter& solver = file_.solver;
  SnapshotJob job;
  job.iteration = iteration_;
  job.files = snapshot_files(solver, iteration_);
  job.hdf5 = solver.snapshot_format() == SolverParameter::HDF5;
  if (!optimizer_->averages()) job.files.average.clear();
  if (!solver.snapshot_include_state()) job.files.state.clear();
  const TrainingCopy::Parts parts = {.gradients = solver.snapshot_diff(),
                                     .average = true,
                                     .state = solver.snapshot_include_state()};
  check_room(snapshot_bytes(*net_, *optimizer_, parts, job.hdf5));
  if (context_.rank() > 0) {
    TrainingCopy::help_to_take(*optimizer_, parts);
    return job;
  }
  writer_->copy().take(*net_, *optimizer_, parts);
  if (!parts.state) return job;
  SolverState& state = job.state;
  state.set_iter(static_cast<int32_t>(iteration_));
  state.set_learned_net(job.files.weights);
  rates_->store(&state);
  store_watches(&state);
  store_carried(&state);
  if (options_.net.precision == Precision::fp16) {
    const DeviceUpdateState update = gpu_->update_state();
    state.set_loss_scale(update.loss_scale);
    state.set_loss_scale_age(update.good);
  }
  state.set_seed(seed_);
  state.set_train_passes(train_passes_);
  if (const int64_t of_ranks = net_->share().all; of_ranks > 0 || samples_before_ > 0) {
    state.set_samples_per_pass(of_ranks > 0 ? of_ranks : batch_of(*net_));
    state.set_samples_before(samples_before_);
  }
  for (uint64_t passes : test_passes_) state.add_test_passes(passes);
  for (float loss : losses_.store(iteration_)) state.add_loss_window(loss);
  state.set_net_fingerprint(fingerprint_of(net_->graph()));
  state.set_recipe(recorded_recipe(solver));
  state.set_batch(batch_of_ranks());
  if (solver.keep_last() > 0) {
    for (const int64_t kept : kept_snapshots()) state.add_kept_snapshots(kept);
    state.add_kept_snapshots(iteration_);
  }
  return job;
}

// Rank 0's disk; what it lacks is an Error on all ranks.
void Solver::check_room(uint64_t bytes) {
  std::string problem;
  try {
    if (context_.rank() == 0) check_snapshot_room(file_.solver, bytes);
  } catch (const Error& error) {
    problem = error.what();
  }
  problem = of_rank_0(context_, problem);
  if (!problem.empty()) fail(problem);
}

void Solver::finish_snapshot() {
  const RankPause pause(context_);  // a disk may be slow
  if (const auto written = writer_->wait()) report(*written);
}

void Solver::report(const WrittenSnapshot& written) {
  if (!written.of_best.empty()) {
    // A disk that is full ends no training.
    if (written.error.empty()) return send_(event::Debug{written.of_best});
    return send_(
        event::Warning{cat("the weights of the best test so far are not kept: ", written.error)});
  }
  if (!written.error.empty()) return send_(event::SnapshotFailed{written.iteration, written.error});
  snapshot_failed_ = false;
  snapshot_iteration_ = written.iteration;
  if (!written.files.state.empty()) {
    last_state_ = written.files.state;
    last_state_iteration_ = written.iteration;
  }
  send_(event::SnapshotDone{written.iteration, written.files.weights, written.files.state,
                            written.hash, written.hash_of_average});
  if (context_.rank() == 0) remove_old_snapshots(written.iteration, written.files);
}

}  // namespace crema
