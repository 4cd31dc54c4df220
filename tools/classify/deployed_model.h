// The net of -model made ready for use: what `deploy` writes and `classify` runs.
#pragma once

#include "net/deploy/deploy.h"
#include "net/prototxt/net_input.h"
#include "tools/console/program_log.h"
#include "tools/flags/flags_of.h"

namespace crema {

// With -assume, -labels and the flags on images. `batch` as in DeployOptions.
using DeployFlags = FlagsOf<"assume", "weights", "labels", "resize", "mean", "scale", "rgb">;
DeployedNet deploy_model(ProgramLog& log, const DeployFlags& flags, const NetInput& input,
                         int batch);
// The same for a net in phase TRAIN, which keeps its losses; batch 0: its own.
DeployedNet training_model(const DeployFlags& flags, const NetInput& input, int batch);

}  // namespace crema
