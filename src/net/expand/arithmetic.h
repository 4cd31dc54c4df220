// The operators and functions of expressions. `at` is the position for errors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/expand/cursor.h"

namespace crema {

// + - * / // % ** == != < <= > >=
Literal apply(std::string_view operation, const Literal& a, const Literal& b, const Place& at);

// min, max, floor, ceil, round, abs, sqrt, length, range
Literal call(const std::string& function, const std::vector<Literal>& arguments, const Place& at);

}  // namespace crema
