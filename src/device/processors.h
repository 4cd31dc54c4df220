// How many processors this process may use. A Context makes the loops of its thread run on so many
// CPU threads, unless OMP_NUM_THREADS says how many.
#pragma once

#include <string>

namespace crema {

// Processors of its affinity mask (taskset, cpusets), and no more than the time that its control
// groups grant, rounded up: containers and cluster schedulers limit by either. At least 1. `root`:
// where /proc and /sys lie (tests).
int usable_processors(const std::string& root = "");

}  // namespace crema
