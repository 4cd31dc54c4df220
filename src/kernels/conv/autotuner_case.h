// What the autotuner knows of a case and its candidates before it times them. Only for
// autotuner_gpu.cpp.
#pragma once

#include <string_view>

#include "kernels/conv/conv.h"

namespace crema {

// Above, benchmarking is not profitable: with enough channels for tensor cores, libraries win.
constexpr double kMaxTunedOperations = 40e9;
constexpr double kSmall = 1e9;  // below, ImplicitGemm if nothing is timed

inline double operations(const ConvCase& c) {
  return 2.0 * static_cast<double>(c.y.count()) * static_cast<double>(c.w.count(1));
}

// im2col writes the patches that ImplicitGemm only gathers: it wins where that has no kernel.
inline bool is_library(std::string_view name) { return name != "im2col"; }

// Tried before all others, which are its candidates.
constexpr int kAutotunedPriority = 100;

inline bool is_for_depthwise(std::string_view name) { return name.starts_with("depthwise"); }

// Supported by candidates of their own, and not by ImplicitGemm.
inline bool depthwise(const ConvCase& c) {
  return is_half(c.dtype) && c.order == Order::channels_last && c.x.axes() == 4 && c.groups > 1 &&
         c.groups == c.x[1] && c.groups == c.y[1];
}

}  // namespace crema
