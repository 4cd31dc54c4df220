// The learning rate's state in snapshots.
#include <algorithm>

#include "net/records.h"
#include "proto/solver.pb.h"
#include "solver/fields/recorded_recipe.h"
#include "solver/iteration/gpu_iteration.h"
#include "solver/rates/learning_rate.h"
#include "solver/solver.h"
#include "solver/test/test_watch.h"

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

// Samples in a training pass, of all ranks that share it.
int64_t Solver::batch_of_ranks() const {
  const int64_t of_ranks = net_->share().all;
  return of_ranks > 0 ? of_ranks : batch_of(*net_);
}

// A resumed run does what its solver's file says now; what differs from the run before is said once.
void Solver::report_changes(const SolverState& state, const std::string& path) {
  std::vector<std::string> changes = changes_since(state.recipe(), file_.solver);
  const int64_t batch = batch_of_ranks();
  if (state.has_batch() && state.batch() != batch)
    changes.push_back(cat("the batch was ", state.batch(), " and is ", batch,
                          " (the place in the data is counted in batches of ", batch, ")"));
  const bool recorded = state.has_recipe();
  if (!recorded && file_.solver.lr_policy() == "multistep" && state.has_current_step() &&
      state.current_step() != rates_.current_step) {
    changes.push_back(cat("the rate had done ", state.current_step(), " steps, but ",
                          rates_.current_step, " of the stepvalues are before iteration ",
                          iteration_));
  }
  if (iteration_ > file_.solver.max_iter() && file_.solver.has_max_iter())
    context_.log().warning(cat(path, " is from iteration ", iteration_, ", beyond max_iter ",
                               file_.solver.max_iter(), " of ", file_.path,
                               ": nothing is left to train; raise max_iter"));
  if (changes.empty()) return;
  context_.log().warning(cat(file_.path, " differs from the solver that wrote ", path, ": ",
                             join(changes, "; "), ". From iteration ", iteration_,
                             " on this file holds: the learning rate is ", rate()));
}

void Solver::restore_rates(const SolverState& state) {
  rates_ = first_rates();
  const std::string& policy = file_.solver.lr_policy();
  // A step of another policy is none of this one.
  const std::string before = recorded_policy(state.recipe());
  const int step = before.empty() || before == policy ? state.current_step() : 0;
  // The file decides, whatever the stepvalues of the run before were.
  rates_.current_step = policy == "multistep" ? multistep_before(file_.solver, iteration_) : step;
  if (state.has_best_score()) rates_.best_score = state.best_score();
  rates_.tests_without_better = state.tests_without_better();
  rates_.scale = rates_.plateau.scale = state.has_rollback_scale() ? state.rollback_scale() : 1;
  for (auto* watched : {keep_best_.get(), early_stop_.get(), plateau_test_.get()}) {
    if (watched) watched->restore(state, last_state_);
  }
  if (gpu_) {
    gpu_->forget_rates();
    gpu_->forget_counters();
  }
  Plateau& plateau = rates_.plateau;
  plateau.step = std::min(step, plateau.steps);
  reported_step_ = plateau.steps > 0 ? plateau.step : rates_.current_step;
  if (plateau.steps == 0) return;
  if (state.has_smallest_loss()) plateau.minimum_loss = state.smallest_loss();
  plateau.last_event = state.has_last_event() ? state.last_event() : iteration_;
  plateau.first_loss = iteration_ - state.loss_window_size();
  if (!gpu_ || !rate_follows_losses()) return;
  gpu_->set_plateau(plateau);
  gpu_->set_losses(iteration_, {state.loss_window().begin(), state.loss_window().end()});
}

}  // namespace crema
