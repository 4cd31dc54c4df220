// on_divergence: ROLLBACK. Weights, history and counters go back to the last snapshot, or to the
// start of the run. The data do not: they go on behind the batch that diverged, so that the same
// batch does not meet the same weights again.
#include <cmath>
#include <limits>

#include "device/memory.h"
#include "solver/divergence/divergence.h"
#include "solver/iteration/epochs.h"
#include "solver/iteration/gpu_iteration.h"
#include "solver/iteration/optimizer.h"
#include "solver/ranks/ranks.h"
#include "solver/rates/rates.h"
#include "solver/snapshot/state_file.h"
#include "solver/solver.h"
#include "solver/test/test_watch.h"

namespace crema {
namespace {

// From the scale of the rate, which snapshots keep.
int rollbacks_in(const SolverParameter& solver, float scale) {
  return static_cast<int>(std::lround(std::log(scale) / std::log(solver.rollback_factor())));
}

}  // namespace

void check_divergence(const SolverFile& file) {
  const SolverParameter& solver = file.solver;
  require(solver.rollback_factor() > 0 && solver.rollback_factor() < 1,
          file.where("rollback_factor"), ": rollback_factor is ", solver.rollback_factor(),
          ", it must be more than 0 and less than 1, so that the rate falls");
  require(solver.rollback_most() > 0, file.where("rollback_most"), ": rollback_most is ",
          solver.rollback_most(), ", it must be at least 1");
  const double least = std::pow(solver.rollback_factor(), solver.rollback_most());
  require(least >= std::numeric_limits<float>::min(), file.where("rollback_factor"),
          ": rollback_factor is ", solver.rollback_factor(), " and rollback_most ",
          solver.rollback_most(), ": nothing would be left of the rate");
  require(solver.skip_most() > 0, file.where("skip_most"), ": skip_most is ", solver.skip_most(),
          ", it must be at least 1");
}

// Only as long as there is no snapshot to go back to.
void Solver::keep_start() {
  if (file_.solver.on_divergence() != SolverParameter::ROLLBACK || start_ ||
      !agreed(last_state_.empty()))
    return;
  start_ = std::make_unique<RunStart>();
  SolverState& state = start_->state;
  state.set_iter(static_cast<int32_t>(iteration_));
  rates_->store(&state);
  store_watches(&state);
  optimizer_->store(&state);
  store_carried(&state);
  if (options_.net.precision == Precision::fp16) {
    const DeviceUpdateState update = gpu_->update_state();
    state.set_loss_scale(update.loss_scale);
    state.set_loss_scale_age(update.good);
  }
  for (uint64_t passes : test_passes_) state.add_test_passes(passes);
  for (float loss : losses_.store(iteration_)) state.add_loss_window(loss);
  const Tensor weights = net_->parameter_arena();
  start_->weights.resize(static_cast<size_t>(weights.count()) * size_of(weights.dtype()));
  copy_bytes(context_, start_->weights.data(), Device::cpu, weights.raw(), context_.device(),
             start_->weights.size());
}

bool Solver::rolls_back() const {
  const SolverParameter& solver = file_.solver;
  return solver.on_divergence() == SolverParameter::ROLLBACK && (start_ || !last_state_.empty()) &&
         rollbacks_in(solver, rates_->scale()) < solver.rollback_most();
}

void Solver::roll_back() {
  const SolverParameter& solver = file_.solver;
  const uint64_t passes = train_passes_;
  const float scale = rates_->scale() * solver.rollback_factor();
  last_state_ = of_rank_0(context_, last_state_);  // which knows what could be written
  if (!last_state_.empty()) {
    const std::string path = last_state_;
    SolverState state = read_solver_state(path);
    state.set_rollback_scale(scale);
    restore(state, path);
  } else {
    const Tensor weights = net_->parameter_arena();
    copy_bytes(context_, weights.raw(), context_.device(), start_->weights.data(), Device::cpu,
               start_->weights.size());
    start_->state.set_rollback_scale(scale);
    restore(start_->state, "the start of the run");
    last_state_ = identity_.resumed_from = "";
  }
  train_passes_ = passes;
  if (epochs_) epochs_->begin(iteration_);
  snapshot_failed_ = false;  // what could not be written is no longer wanted
  send_(event::RolledBack{diverged_, iteration_, last_state_, divergence_,
                          rollbacks_in(solver, scale), solver.rollback_most(), scale});
}

}  // namespace crema
