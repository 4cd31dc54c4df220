// Measures what `crema scale` predicts from.
#pragma once

#include <string>

#include "net/net.h"
#include "proto/solver.pb.h"
#include "tools/scale/step_profile.h"

namespace crema {

// Measures a net for some seconds: its steps one by one, and whole training steps, whose time those
// of the steps are scaled to, because steps that overlap take less together.
StepProfile measure_profile(Net& net, const SolverParameter& solver, const std::string& device);

}  // namespace crema
