// What an update needs besides the learning rate, as functions of the iteration: momentum, weight
// decay, Adam's correction; and the checks of the fields that set them.
#pragma once

#include <cstdint>

#include "base/log.h"
#include "kernels/optim/update.h"

namespace crema {

class SolverParameter;
struct SolverFile;

// Error when a policy is unknown or a value makes no sense for the rule.
void check_schedules(const SolverParameter& solver, const RuleTraits& rule);

// A warning where Adam has no momentum: it is Caffe's 0 then, which is hardly meant.
void check_momentum(const SolverFile& file, Log& log);

// momentum2, or the rule's default where the solver does not set it.
float momentum2_of(const SolverParameter& solver, const RuleTraits& rule);

// The hyperparameters of an iteration whose learning rate is `rate`.
Hyperparameters hyperparameters_at(const SolverParameter& solver, const RuleTraits& rule,
                                   int64_t iteration, double rate);

// From muon_steps, muon_scale, ... `precision`: of the net.
MuonOptions muon_options(const SolverParameter& solver, Precision precision);

// From larc, local_lr_auto and the clipping of blobs and layers.
FactorRules factor_rules(const SolverParameter& solver);

}  // namespace crema
