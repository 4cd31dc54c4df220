// `crema export -to caffe`: writes a net for a reader of Caffe's files, reads the files again and
// compares.
#pragma once

#include "net/deploy/deploy.h"
#include "net/net.h"
#include "tools/console/program_log.h"
#include "tools/flags/flags_of.h"

namespace crema {

using CaffeExportFlags = FlagsOf<"to", "output", "output_weights", "dialect", "opset", "fold",
                                 "verify", "python", "tolerance", "proof">;

// Whether the files are Caffe's. Error for flags that do not fit together.
bool is_caffe_export(const CaffeExportFlags& flags);

// `net` is the deployed one with its weights, as export_caffe() takes it. Returns the exit code.
int export_caffe_files(Net& net, const DeployedNet& deployed, const CaffeExportFlags& flags,
                       ProgramLog& log);

}  // namespace crema
