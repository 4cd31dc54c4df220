// The learning rate's state in snapshots.
#include <algorithm>

#include "proto/solver.pb.h"
#include "solver/gpu_iteration.h"
#include "solver/learning_rate.h"
#include "solver/solver.h"
#include "solver/test_watch.h"

namespace crema {

void Solver::store_rates(SolverState* state) {
  if (rates_.plateau.steps > 0) {
    if (gpu_ && rate_follows_losses()) rates_.plateau = gpu_->plateau();
    state->set_smallest_loss(rates_.plateau.minimum_loss);
    state->set_last_event(rates_.plateau.last_event);
  }
  if (file_.solver.lr_policy() == "stepearly") {
    state->set_best_score(rates_.best_score);
    state->set_tests_without_better(rates_.tests_without_better);
  }
  if (rates_.scale != 1) state->set_rollback_scale(rates_.scale);
  for (const auto* watched : {keep_best_.get(), early_stop_.get(), plateau_test_.get()}) {
    if (watched) watched->store(state);
  }
  state->set_current_step(rates_.plateau.steps > 0 ? rates_.plateau.step : rates_.current_step);
}

RateState Solver::first_rates() const {
  RateState state = first_rate_state(file_.solver);
  if (file_.solver.stepsize_epoch() > 0)
    state.step_length = epoch_length_.updates(file_.solver.stepsize_epoch());
  return state;
}

void Solver::restore_rates(const SolverState& state) {
  rates_ = first_rates();
  rates_.current_step = state.current_step();
  // Of epochs, which another batch than that of the run before makes longer or shorter.
  if (file_.solver.stepvalue_epoch_size() > 0) {
    const auto& values = file_.solver.stepvalue();
    rates_.current_step = static_cast<int>(std::count_if(
        values.begin(), values.end(), [this](int value) { return value < iteration_; }));
  }
  if (state.has_best_score()) rates_.best_score = state.best_score();
  rates_.tests_without_better = state.tests_without_better();
  rates_.scale = rates_.plateau.scale = state.has_rollback_scale() ? state.rollback_scale() : 1;
  for (auto* watched : {keep_best_.get(), early_stop_.get(), plateau_test_.get()}) {
    if (watched) watched->restore(state, last_state_);
  }
  reported_step_ = state.current_step();
  if (gpu_) {
    gpu_->forget_rates();
    gpu_->forget_counters();
  }
  Plateau& plateau = rates_.plateau;
  if (plateau.steps == 0) return;
  plateau.step = std::min(state.current_step(), plateau.steps);
  if (state.has_smallest_loss()) plateau.minimum_loss = state.smallest_loss();
  plateau.last_event = state.has_last_event() ? state.last_event() : iteration_;
  plateau.first_loss = iteration_ - state.loss_window_size();
  if (!gpu_ || !rate_follows_losses()) return;
  gpu_->set_plateau(plateau);
  gpu_->set_losses(iteration_, {state.loss_window().begin(), state.loss_window().end()});
}

}  // namespace crema
