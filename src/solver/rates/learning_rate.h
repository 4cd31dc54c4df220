// Learning-rate policies: the rate as a function of the iteration; the formulas are at lr_policy in
// proto/solver.proto. Warm-up and min_lr apply to all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/optim/plateau.h"

namespace crema {

class SolverParameter;

// The state of the policies; a snapshot stores it.
struct RateState {
  int current_step = 0;  // steps that "step", "multistep" and "stepearly" have done
  Plateau plateau;
  float best_score = -3.402823466e38f;  // "stepearly": the largest
  int tests_without_better = 0;
  float scale = 1;  // of every rate, as on_divergence: ROLLBACK lowers it; beneath min_lr, too
  // "step": iterations in a step, where epochs give it; 0: stepsize. No snapshot stores it.
  double step_length = 0;
};

// The names of all policies.
std::vector<std::string> rate_policies();

// Error when the policy is unknown, when a field that it needs is missing, or when fields disagree.
void check_learning_rate(const SolverParameter& solver);

// At the start of a run.
RateState first_rate_state(const SolverParameter& solver);

// The rate of an iteration, rounded to float as in Caffe. Advances the state's step where
// "multistep" reaches the next stepvalue; "plateau" and "stepearly" advance by the calls below.
double learning_rate(const SolverParameter& solver, int iteration, RateState* state);

// Steps that "multistep" has done before an iteration, in a run that had these fields from its start.
int multistep_before(const SolverParameter& solver, int64_t iteration);

// Call after each test, for "stepearly"; true when the rate drops. For "plateau" call
// state->plateau.observe().
bool observe_score(const SolverParameter& solver, float score, RateState* state);

}  // namespace crema
