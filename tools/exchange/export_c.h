// `crema export -to c`: compiles a net to a C file and its header, compiles and runs these, and compares.
#pragma once

#include "net/deploy/deploy.h"
#include "net/net.h"
#include "tools/console/program_log.h"
#include "tools/exchange/training_net.h"
#include "tools/flags/flags_of.h"

namespace crema {

using CExportFlags =
    FlagsOf<"model", "weights", "output", "output_weights", "main", "ram", "flash", "fold",
            "verify", "python", "tolerance", "proof", "train", "train_batch", "solver">;

// Error for flags that do not fit -to c, before anything is read.
void check_c_export_flags(const CExportFlags& flags);

// `net` is the deployed one with its weights, as export_onnx() takes it; `folder`: that of its file;
// `training`: null without -train. Returns the exit code.
int export_c_files(Net& net, const DeployedNet& deployed, const std::vector<std::string>& labels,
                   const std::string& folder, const CTrainingNet* training,
                   const CExportFlags& flags, ProgramLog& log);

}  // namespace crema
