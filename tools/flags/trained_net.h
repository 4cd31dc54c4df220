// The net that a solver trains, for verbs that measure it on random data.
#pragma once

#include "net/prototxt/net_input.h"
#include "tools/flags/net_flags.h"

namespace crema {

using TrainedNetFlags = FlagsOf<"assume", "batch", "level", "stage">;

// With the layers that `teacher` and `quantize` add, frozen layers and room for the update rule. The caller sets
// passes and precision.
NetInput read_trained_net(ProgramLog& log, Context& context, const TrainedNetFlags& flags,
                          const SolverFile& file);

}  // namespace crema
