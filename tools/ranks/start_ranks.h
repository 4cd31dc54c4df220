// `crema train -gpu 0,1`: this process becomes the launcher of one rank for each GPU.
#pragma once

#include <string>
#include <vector>

namespace crema {

// Starts this program once more for each GPU, with the same words except -gpu, and waits for all of
// them. Returns the exit code: 0 if all end with 0, otherwise that of the first that failed, 128 +
// number for a signal. Logs nothing, except that signals have ended ranks which could not report it
// themselves. Call it before OpenMP or any thread has started.
int start_ranks(const std::vector<int>& gpus, const std::vector<std::string>& words);

}  // namespace crema
