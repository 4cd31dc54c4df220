// `crema compare MODEL.onnx NET.prototxt -weights FILES`: where a model and a net compute different
// values.
#pragma once

#include "tools/console/program_log.h"
#include "tools/exchange/verification_report.h"
#include "tools/flags/flags_of.h"

namespace crema {

using CompareOnnxFlags = FlagsOf<"weights", "weights_mode", "phase", "level", "stage", "assume",
                                 "batch", "set", "python", "tolerance", "proof">;

// Runs both with the same random inputs, the model in each runtime that -python has, and prints the
// differences of blobs that have the same name, and of the results. Error if results differ, or if the
// two have not the same inputs or nothing in common.
void compare_onnx(const std::string& model, const std::string& net, const CompareOnnxFlags& flags,
                  ProgramLog& log);

}  // namespace crema
