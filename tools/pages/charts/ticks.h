// The values that an axis is marked with.
#pragma once

#include <vector>

namespace crema {

// Multiples of 1, 2 or 5 times a power of ten, about `wanted` of them and never many more, ascending.
// Limits may be any two numbers, such as neighbouring doubles, in whose range a step is lost in
// rounding, or -1e308 and 1e308, whose difference is infinite. No ticks unless both are finite and
// low < high.
std::vector<double> linear_ticks(double low, double high, int wanted);

// Powers of ten, for a logarithmic axis; no ticks unless 0 < low < high.
std::vector<double> log_ticks(double low, double high, int wanted);

}  // namespace crema
