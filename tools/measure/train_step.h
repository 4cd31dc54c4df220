// Times whole training steps: forward, backward and update.
#pragma once

#include "net/net.h"
#include "proto/solver.pb.h"
#include "tools/console/program_log.h"
#include "tools/measure/repeated.h"

namespace crema {

// Seconds of a training step, and of the update in it.
struct TrainStepSeconds {
  double step = 0, update = 0;
};
// With the solver's update rule, at a small learning rate. Takes about three seconds, or
// -iterations steps when that flag is given. Changes the net's parameters.
TrainStepSeconds measure_train_step(const RepeatFlags& flags, Net& net,
                                    const SolverParameter& solver);

// With the solver's update rule, or without a solver SGD with momentum 0.9 and weight decay 5e-4. After a warm-up, steps are timed as time_steps()
// (repeated.h) says. Logs the median, samples per second, peak memory (CPU: growth of the resident set
// since the program began; GPU: bytes reserved), percentiles, and the loss before and after.
NetTimes time_train_step(ProgramLog& log, const TimingFlags& flags, Net& net,
                         const SolverParameter* solver = nullptr);

}  // namespace crema
