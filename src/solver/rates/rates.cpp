#include "solver/rates/rates.h"

#include <algorithm>

#include "proto/solver.pb.h"
#include "solver/fields/recorded_recipe.h"

namespace crema {

Rates::Rates(const SolverParameter& solver, const EpochLength& length)
    : solver_(solver), length_(length), state_(first()) {}

RateState Rates::first() const {
  RateState state = first_rate_state(solver_);
  if (solver_.stepsize_epoch() > 0) state.step_length = length_.updates(solver_.stepsize_epoch());
  return state;
}

double Rates::at(int64_t iteration) const {
  RateState state = state_;
  if (device_) state.plateau = device_();
  return learning_rate(solver_, static_cast<int>(iteration), &state);
}

std::vector<double> Rates::ahead(int64_t first, int64_t count) const {
  RateState state = state_;
  std::vector<double> rates;
  for (int64_t i = first; i < first + count; ++i)
    rates.push_back(learning_rate(solver_, static_cast<int>(i), &state));
  return rates;
}

double Rates::advance(int64_t iteration) {
  return learning_rate(solver_, static_cast<int>(iteration), &state_);
}

int Rates::steps() const {
  return state_.plateau.steps > 0 ? state_.plateau.step : state_.current_step;
}

std::optional<event::LearningRateStep> Rates::take_step(int64_t iteration) {
  if (steps() == taken_) return std::nullopt;
  taken_ = steps();
  // Steps of a fixed length are no news.
  if (solver_.lr_policy() == "step") return std::nullopt;
  return event::LearningRateStep{solver_.lr_policy(), iteration, taken_};
}

bool Rates::follows_losses() const {
  return state_.plateau.steps > 0 && !solver_.has_plateau_test();
}

void Rates::observe_loss(double mean, int64_t iteration) {
  if (follows_losses() && !device_) state_.plateau.observe(static_cast<float>(mean), iteration);
}

void Rates::observe_score(float score) {
  if (crema::observe_score(solver_, score, &state_)) changed();
}

bool Rates::observe_tests(int tests_since_best) {
  Plateau& plateau = state_.plateau;
  if (plateau.step >= plateau.steps || tests_since_best < plateau.windows[plateau.step])
    return false;
  ++plateau.step;
  changed();
  return true;
}

void Rates::read_device() {
  if (device_) state_.plateau = device_();
}

void Rates::store(SolverState* state) {
  if (state_.plateau.steps > 0) {
    read_device();
    state->set_smallest_loss(state_.plateau.minimum_loss);
    state->set_last_event(state_.plateau.last_event);
  }
  if (solver_.lr_policy() == "stepearly") {
    state->set_best_score(state_.best_score);
    state->set_tests_without_better(state_.tests_without_better);
  }
  if (state_.scale != 1) state->set_rollback_scale(state_.scale);
  state->set_current_step(steps());
}

void Rates::restore(const SolverState& state, int64_t iteration) {
  state_ = first();
  changed();
  const std::string& policy = solver_.lr_policy();
  // A step of another policy is none of this one.
  const std::string before = recorded_policy(state.recipe());
  const int step = before.empty() || before == policy ? state.current_step() : 0;
  // The file decides, whatever the stepvalues of the run before were.
  state_.current_step = policy == "multistep" ? multistep_before(solver_, iteration) : step;
  if (state.has_best_score()) state_.best_score = state.best_score();
  state_.tests_without_better = state.tests_without_better();
  state_.scale = state_.plateau.scale = state.has_rollback_scale() ? state.rollback_scale() : 1;
  Plateau& plateau = state_.plateau;
  plateau.step = std::min(step, plateau.steps);
  taken_ = steps();
  if (plateau.steps == 0) return;
  if (state.has_smallest_loss()) plateau.minimum_loss = state.smallest_loss();
  plateau.last_event = state.has_last_event() ? state.last_event() : iteration;
  plateau.first_loss = iteration - state.loss_window_size();
}

}  // namespace crema
