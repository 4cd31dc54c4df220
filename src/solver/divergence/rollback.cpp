// on_divergence: ROLLBACK. Weights, history and counters go back to the last snapshot, or to the
// start of the run. The data do not: they go on behind the batch that diverged, so that the same
// batch does not meet the same weights again.
#include <cmath>
#include <limits>

#include "device/memory.h"
#include "solver/divergence/divergence.h"
#include "solver/iteration/epochs.h"
#include "solver/iteration/optimizer.h"
#include "solver/ranks/ranks.h"
#include "solver/rates/rates.h"
#include "solver/snapshot/snapshots.h"
#include "solver/snapshot/state_file.h"
#include "solver/solver.h"

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
      !agreed(context_, snapshots_->last_state().empty()))
    return;
  start_ = std::make_unique<RunStart>();
  store(&start_->state);
  optimizer_->store(&start_->state);
  const Tensor weights = net_->parameter_arena();
  start_->weights.resize(static_cast<size_t>(weights.count()) * size_of(weights.dtype()));
  copy_bytes(context_, start_->weights.data(), Device::cpu, weights.raw(), context_.device(),
             start_->weights.size());
}

bool Solver::rolls_back() const {
  const SolverParameter& solver = file_.solver;
  return solver.on_divergence() == SolverParameter::ROLLBACK &&
         (start_ || !snapshots_->last_state().empty()) &&
         rollbacks_in(solver, rates_->scale()) < solver.rollback_most();
}

void Solver::roll_back() {
  const SolverParameter& solver = file_.solver;
  const uint64_t passes = train_passes_;
  const float scale = rates_->scale() * solver.rollback_factor();
  // Rank 0 knows what could be written.
  const std::string path = of_rank_0(context_, snapshots_->last_state());
  if (!path.empty()) {
    SolverState state = read_solver_state(path);
    state.set_rollback_scale(scale);
    restore(state, path);
  } else {
    const Tensor weights = net_->parameter_arena();
    copy_bytes(context_, weights.raw(), context_.device(), start_->weights.data(), Device::cpu,
               start_->weights.size());
    start_->state.set_rollback_scale(scale);
    restore(start_->state, "the start of the run");
    snapshots_->forget_last();
    identity_.resumed_from = "";
  }
  train_passes_ = passes;
  if (epochs_) epochs_->begin(iteration_);
  snapshots_->forgive();  // what could not be written is no longer wanted
  send_(event::RolledBack{diverged_, iteration_, path, divergence_, rollbacks_in(solver, scale),
                          solver.rollback_most(), scale});
}

}  // namespace crema
