// Measures what `crema scale` predicts from.
#pragma once

#include <string>

#include "tools/measure/train_step.h"
#include "tools/scale/step_profile.h"

namespace crema {

// Measures a net for some seconds: its steps one by one, and whole training steps. The times of the
// steps are scaled to the latter, because overlapping steps take less time together.
StepProfile measure_profile(const RepeatFlags& flags, Net& net, const SolverParameter& solver,
                            const std::string& device);

}  // namespace crema
