// How many processors this process may use. A Context runs the loops of its thread on that many CPU
// threads, unless OMP_NUM_THREADS is set.
#pragma once

#include <string>

namespace crema {

// The number of processors in the affinity mask (taskset, cpusets), but at most the quota of the
// control groups, rounded up: containers and cluster schedulers limit by either. At least 1.
// `root`: the folder that contains /proc and /sys (tests).
int usable_processors(const std::string& root = "");

}  // namespace crema
