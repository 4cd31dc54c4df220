// What an update takes besides the learning rate, as functions of the iteration: momentum, weight
// decay, Adam's correction; and the checks of the fields that say so.
#pragma once

#include <cstdint>

#include "kernels/optim/update.h"

namespace crema {

class SolverParameter;

// Error when a policy is unknown or a number makes no sense for the rule.
void check_schedules(const SolverParameter& solver, UpdateRule rule);

// momentum2, or what the rule takes where the solver does not say.
float momentum2_of(const SolverParameter& solver, UpdateRule rule);

// The numbers of an iteration whose learning rate is `rate`.
UpdateRates update_rates(const SolverParameter& solver, UpdateRule rule, int64_t iteration,
                         double rate);

// From larc, local_lr_auto and the clipping of blobs and layers.
FactorRules factor_rules(const SolverParameter& solver);

}  // namespace crema
