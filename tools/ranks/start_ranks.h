// `crema train -gpu 0,1`: this process becomes the launcher of one rank for each GPU.
#pragma once

#include <string>
#include <vector>

namespace crema {

// Starts this program once more for each GPU, with the same words but for -gpu, and waits for all of
// them. Returns the exit code: 0 when all end with 0, else that of the first that failed, 128 +
// number for a signal. Logs nothing, except that signals have ended ranks where none could say so
// itself. Call it before OpenMP or any thread has started.
int start_ranks(const std::vector<int>& gpus, const std::vector<std::string>& words);

}  // namespace crema
