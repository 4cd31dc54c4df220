// Compares two files of weights, parameter by parameter.
#pragma once

#include <string>

namespace crema {

// Prints which parameters differ, those that differ most first, then what only one file has.
void compare_weights(const std::string& a, const std::string& b);

}  // namespace crema
