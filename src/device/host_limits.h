// How much of this machine the process may use: processors and main memory.
#pragma once

#include <cstddef>
#include <string>

namespace crema {

// The number of processors in the affinity mask (taskset, cpusets), but at most the quota of the
// control groups, rounded up: containers and cluster schedulers limit by either. At least 1. A
// Context runs the loops of its thread on that many CPU threads, unless OMP_NUM_THREADS is set.
// `root`: the folder that contains /proc and /sys (tests).
int usable_processors(const std::string& root = "");

// Bytes that the operating system has left for this process, caches of files included, or less where
// a control group or a limit of the process is tighter. The largest number where nothing says.
size_t free_host_memory();

}  // namespace crema
