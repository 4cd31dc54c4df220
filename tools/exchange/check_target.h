// `crema check -target`: which layers of a net a reader of Caffe's files does not take.
#pragma once

#include "net/check/finding.h"
#include "tools/console/program_log.h"
#include "tools/flags/flags_of.h"

namespace crema {

using TargetFlags = FlagsOf<"model", "target", "assume", "weights", "level", "stage", "set">;

// An error for each layer that is refused, a line for each that export would rewrite, in the order
// of the net.
Findings findings_of_target(ProgramLog& log, const TargetFlags& flags);

}  // namespace crema
