// Versions of the libraries that this program uses.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace crema {

// "oneDNN" and "2.6.0" for those that are loaded now. Loads none: a library that is loaded late is left
// out before.
std::vector<std::pair<std::string, std::string>> loaded_libraries();

// The version of the kernel's NVIDIA driver, or the CUDA that it supports; "": neither is known.
std::string gpu_driver();

}  // namespace crema
