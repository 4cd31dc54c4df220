// The net that `crema export -to c -train` trains, for this verb and for the way back of its weights.
#pragma once

#include <memory>

#include "net/net.h"
#include "net/prototxt/prototxt.h"
#include "tools/console/program_log.h"
#include "tools/flags/flags_of.h"

namespace crema {

struct CTrainingNet {
  SolverFile solver;         // whose net it is
  std::unique_ptr<Net> net;  // in phase TRAIN, with its weights, as compile_to_c() takes it
};

// batch 0: the net's own.
using CTrainingNetFlags =
    FlagsOf<"model", "solver", "weights", "weights_mode", "assume", "level", "stage", "set">;
CTrainingNet read_training_net(ProgramLog& log, const CTrainingNetFlags& flags, int batch,
                               Context& context);

}  // namespace crema
