// Measures how long a repeated step takes.
#pragma once

#include <functional>
#include <vector>

#include "net/net.h"
#include "tools/console/program_log.h"
#include "tools/flags/flags_of.h"
#include "tools/measure/net_times.h"

namespace crema {

using RepeatFlags = FlagsOf<"iterations">;
using TimingFlags = FlagsOf<"iterations", "warmup">;

// Seconds that a step took, one number per measurement of `group` steps.
struct StepSeconds {
  std::vector<double> each;
  int group = 1;
};

// run(n): runs n steps, waits for them, and returns the seconds that one took. Steps are timed for 2
// seconds, on a GPU in groups of about 50 ms, so that it does not wait for the host; or one by one
// -iterations times when that flag is given.
StepSeconds time_steps(const RepeatFlags& flags, Device device,
                       const std::function<double(int)>& run);

// The times of whole steps, without those of layers. Logs "WHAT: batch 64  1.234 ms/UNIT  51864 img/s
//   100 MiB  (median of 40 measurements)" and the percentiles.
NetTimes log_speed(ProgramLog& log, const char* what, const char* unit, Net& net,
                   const StepSeconds& seconds, size_t memory_bytes);

// Adds the times of single layers: passes of about a second, but at most -iterations.
void time_steps_of(Net& net, const TimingFlags& flags, bool backward, NetTimes* times);

}  // namespace crema
