// The net of -model made ready for use: what `deploy` writes and `classify` runs.
#pragma once

#include "net/deploy/deploy.h"
#include "net/prototxt/net_input.h"
#include "tools/console/program_log.h"

namespace crema {

// With -assume, -labels and the flags on images. `batch` as in DeployOptions.
DeployedNet deploy_model(ProgramLog& log, const NetInput& input, int batch);

}  // namespace crema
