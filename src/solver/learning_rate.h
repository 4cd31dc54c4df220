// Learning-rate policies: the rate as a function of the iteration; the formulas are at lr_policy in
// proto/solver.proto. Warm-up and min_lr hold for all of them.
#pragma once

#include <cstdint>

#include "kernels/optim/plateau.h"

namespace crema {

class SolverParameter;

// What policies remember; a snapshot stores it.
struct RateState {
  int current_step = 0;  // that "step", "multistep" and "stepearly" have done
  Plateau plateau;
  float best_score = -3.402823466e38f;  // "stepearly": the largest
  int tests_without_better = 0;
};

// Error when the policy is unknown, when a field that it needs is missing, or when fields disagree.
void check_learning_rate(const SolverParameter& solver);

// At the start of a run.
RateState first_rate_state(const SolverParameter& solver);

// The rate of an iteration, rounded to float as in Caffe. Raises the state's step where "multistep"
// reaches the next stepvalue; "plateau" and "stepearly" move by what they are told below.
double learning_rate(const SolverParameter& solver, int iteration, RateState* state);

// "plateau" is state->plateau.observe(). "stepearly": a test has been done; true when the rate
// falls.
bool observe_score(const SolverParameter& solver, float score, RateState* state);

}  // namespace crema
