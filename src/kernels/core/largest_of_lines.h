// The largest of lists whose entries lie in lines one behind another in memory, many lists at once:
// for the CPU, where a loop over one list after another is slow.
#pragma once

#include <algorithm>
#include <cstdint>

namespace crema {

constexpr int64_t kListsTogether = 512;

// Entry k of list i is x[k * step + i], for k < extent and i < count <= kListsTogether. Writes the
// largest value of each list and its place, of equal ones the first or the last.
template <bool kLast, typename T>
void largest_of_lines(const T* x, int64_t extent, int64_t step, int64_t count, T* most,
                      int32_t* best) {
  std::copy(x, x + count, most);
  std::fill(best, best + count, 0);
  for (int64_t k = 1; k < extent; ++k) {
    const T* const line = x + k * step;
    const auto place = static_cast<int32_t>(k);
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const bool better = kLast ? line[i] >= most[i] : line[i] > most[i];
      best[i] = better ? place : best[i];
      most[i] = better ? line[i] : most[i];
    }
  }
}

}  // namespace crema
