// Verifies an ONNX model as -python and -tolerance say, and prints the result.
#pragma once

#include "tools/console/program_log.h"
#include "tools/exchange/verification.h"
#include "tools/flags/flags_of.h"

namespace crema {

using VerificationFlags = FlagsOf<"python", "tolerance">;
// Error, which says what has been written ("model was"), if a runtime computes other results.
void report_verification(Net& net, const ComparedModel& compared, const VerificationFlags& flags,
                         const char* written, ProgramLog& log);

}  // namespace crema
