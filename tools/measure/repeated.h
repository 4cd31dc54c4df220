// Measures how long a repeated step takes.
#pragma once

#include <functional>
#include <vector>

#include "net/net.h"
#include "tools/console/program_log.h"
#include "tools/flags/flags_of.h"

namespace crema {

using RepeatFlags = FlagsOf<"iterations">;

// Seconds of a step, one number per measurement. run(n): runs n steps, waits for them, and returns
// the seconds that one took. Steps are timed in groups of about 50 ms for 2 seconds, or one by one
// -iterations times when that flag is given.
std::vector<double> time_steps(const RepeatFlags& flags, const std::function<double(int)>& run);

double median(std::vector<double> values);

// Logs "WHAT: batch 64  1.234 ms/UNIT  51864 img/s  100 MiB  (median of 40 measurements)".
void log_speed(ProgramLog& log, const char* what, const char* unit, Net& net,
               const std::vector<double>& seconds, size_t memory_bytes);

}  // namespace crema
