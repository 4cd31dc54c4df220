// Verifies a written model as -python, -tolerance and -proof say, and prints the result.
#pragma once

#include "tools/console/program_log.h"
#include "tools/exchange/verification.h"
#include "tools/flags/flags_of.h"

namespace crema {

using VerificationFlags = FlagsOf<"python", "tolerance", "proof">;

constexpr int kVerificationDraws = 3;

// Error, before anything is written, if -tolerance is no tolerance or -proof cannot be a folder.
void check_verification_flags(const VerificationFlags& flags);

// Returns how many runtimes ran it; a warning if there is none. Error if one computes other results;
// `consequence` ends its message ("The model was written").
int report_verification(Net& net, const ComparedModel& compared, const VerificationFlags& flags,
                        const std::string& consequence, ProgramLog& log);

// The same of Caffe's files, which `again` was read from: first in Crema itself, then in OpenCV 4 and
// ncnn if they are there. Only the reader that the files are for must agree.
void report_caffe_verification(Net& net, Net& again, const ComparedModel& compared,
                               const VerificationFlags& flags, const std::string& dialect,
                               ProgramLog& log);

// The table of one program. Error if it computes other results.
void report_one_verification(const Net& net, const Verification& one,
                             const VerificationFlags& flags, const std::string& consequence,
                             ProgramLog& log);

}  // namespace crema
