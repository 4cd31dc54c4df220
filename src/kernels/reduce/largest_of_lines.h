// Maxima of many lists at once, whose entries with the same index are contiguous in memory: for the
// CPU, where a loop over one list after another is slow.
#pragma once

#include <algorithm>
#include <cstdint>

namespace crema {

constexpr int64_t kListsTogether = 512;

// Entry k of list i is x[k * step + i], for k < extent and i < count <= kListsTogether. Writes the
// maximum of each list and its index, of equal ones the first or the last (kLast).
template <bool kLast, typename T>
void largest_of_lines(const T* x, int64_t extent, int64_t step, int64_t count, T* maximum,
                      int32_t* best) {
  std::copy(x, x + count, maximum);
  std::fill(best, best + count, 0);
  for (int64_t k = 1; k < extent; ++k) {
    const T* const line = x + k * step;
    const auto position = static_cast<int32_t>(k);
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const bool better = kLast ? line[i] >= maximum[i] : line[i] > maximum[i];
      best[i] = better ? position : best[i];
      maximum[i] = better ? line[i] : maximum[i];
    }
  }
}

}  // namespace crema
