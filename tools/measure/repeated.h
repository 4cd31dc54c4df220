// Measures how long a repeated step takes.
#pragma once

#include <functional>
#include <vector>

#include "tools/flags/flags_of.h"

namespace crema {

using RepeatFlags = FlagsOf<"iterations">;

// Seconds of a step, one number per measurement. run(n): runs n steps, waits for them, and returns
// the seconds that one took. Steps are timed in groups of about 50 ms for 2 seconds, or one by one
// -iterations times when that flag is given.
std::vector<double> time_steps(const RepeatFlags& flags, const std::function<double(int)>& run);

double median(std::vector<double> values);

}  // namespace crema
