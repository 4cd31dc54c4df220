// Best-path decoding of CTC scores: takes the best class of each step, merges repeats and drops
// blanks. For .cu files only.
#pragma once

#include <algorithm>

#include "base/ceil_div.h"
#include "device/parallel.h"
#include "tensor/on.h"

namespace crema {

// The best classes of all sequences, and the labels read from them.
struct BestPath {
  int64_t steps, sequences;
  int64_t of_step, of_sequence;  // strides in `best`
  int64_t blank;
  bool joins;
  const int32_t* best;

  // Writes the labels of sequence n and returns their number, at most `until` (the number of valid
  // steps).
  CREMA_HD int32_t read(int64_t n, int64_t until, int32_t* labels) const {
    constexpr int kTogether = 8;  // loads in flight at once
    int32_t count = 0, before = -1;
    for (int64_t first = 0; first < until; first += kTogether) {
      int32_t label[kTogether];
      for (int i = 0; i < kTogether; ++i) {
        const int64_t t = first + i < until ? first + i : first;
        label[i] = best[n * of_sequence + t * of_step];
      }
      for (int i = 0; i < kTogether; ++i) {
        const bool repeats = joins && label[i] == before;
        if (first + i < until && label[i] != blank && !repeats) labels[count++] = label[i];
        before = label[i];
      }
    }
    return count;
  }
};

// The target labels: (sequences, maximum), blanks anywhere.
template <typename T>
struct WantedLabels {
  const T* labels;
  int64_t maximum, blank;
  // A label below zero ends the sequence, when `ending`.
  bool ending;
  // Writes the valid labels of sequence n and returns their number.
  CREMA_HD int32_t read(int64_t n, int32_t* wanted) const {
    int32_t count = 0;
    bool ended = false;
    for (int64_t j = 0; j < maximum; ++j) {
      const T label = labels[n * maximum + j];
      ended = ended || (ending && label < 0);
      const auto whole = static_cast<int32_t>(label + T(0.5));
      if (!ended && whole != blank) wanted[count++] = whole;
    }
    return count;
  }
};

#ifdef __CUDACC__
// One warp per row.
template <typename T>
__global__ void __launch_bounds__(256)
    find_best_classes(int64_t rows, int classes, const T* scores, int32_t* best) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * 8 + threadIdx.x / 32;
  if (row >= rows) return;
  const T* const score = scores + row * classes;
  int position = lane < classes ? lane : 0;
  T maximum = score[position];
#pragma unroll 8
  for (int k = lane + 32; k < classes; k += 32) {
    const T value = score[k];
    position = value > maximum ? k : position;
    maximum = value > maximum ? value : maximum;
  }
  for (int step = 16; step > 0; step /= 2) {
    const T other = __shfl_xor_sync(0xffffffffu, maximum, step);
    const int other_position = __shfl_xor_sync(0xffffffffu, position, step);
    const bool better = other > maximum || (other == maximum && other_position < position);
    position = better ? other_position : position;
    maximum = better ? other : maximum;
  }
  if (lane == 0) best[row] = position;
}
#endif

// Scores of (rows, classes): the best class of each row, the first of equal ones.
template <typename T>
void best_classes(Context& context, const Tensor& scores, int64_t classes, int32_t* best) {
  const T* const all = scores.data<T>();
  const int64_t rows = scores.count() / classes;
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    return launch(context.gpu(), find_best_classes<T>,
                  {static_cast<unsigned>(ceil_div(rows, 8)), 256}, rows, static_cast<int>(classes),
                  all, best);
  }
#endif
  (void)context;
#pragma omp parallel for schedule(static) if (rows > 64)
  for (int64_t row = 0; row < rows; ++row) {
    // Finds the maximum in a loop that vectorizes, then its index, from the cache.
    const T* const score = all + row * classes;
    T maximum = score[0];
#pragma omp simd reduction(max : maximum)
    for (int64_t k = 0; k < classes; ++k) maximum = score[k] > maximum ? score[k] : maximum;
    const T* const found = std::find(score, score + classes, maximum);
    best[row] = static_cast<int32_t>(found < score + classes ? found - score : 0);
  }
}

}  // namespace crema
