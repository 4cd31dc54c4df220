// The command of one rank, derived from the command for all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace crema {

// The words of a command, whose first is the program, with `-gpu GPU` in place of its own -gpu.
// takes_value: whether a flag without '=' is followed by its value.
std::vector<std::string> arguments_for_gpu(
    int gpu, const std::vector<std::string>& words,
    const std::function<bool(const std::string& flag)>& takes_value);

}  // namespace crema
