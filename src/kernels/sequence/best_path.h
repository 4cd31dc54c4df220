// Reading labels from scores step by step: the best class of each step, equal neighbours joined,
// blanks dropped. For .cu files only.
#pragma once

#include <algorithm>

#include "device/parallel.h"
#include "tensor/on.h"

namespace crema {

// The best classes of all sequences and what is read from them.
struct BestPath {
  int64_t steps, sequences;
  int64_t of_step, of_sequence;  // distances in `best`
  int64_t blank;
  bool joins;
  const int32_t* best;

  // Writes the labels of sequence n, as many as it returns, at most `until` (steps that count).
  CREMA_HD int32_t read(int64_t n, int64_t until, int32_t* labels) const {
    constexpr int kTogether = 8;  // loads that are on their way at once
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

// Where the labels that should come out lie: (sequences, most), blanks anywhere.
template <typename T>
struct WantedLabels {
  const T* labels;
  int64_t most, blank;
  // A label below zero ends the sequence, when `ending`.
  bool ending;
  // Writes those of sequence n that count, as many as it returns.
  CREMA_HD int32_t read(int64_t n, int32_t* wanted) const {
    int32_t count = 0;
    bool ended = false;
    for (int64_t j = 0; j < most; ++j) {
      const T label = labels[n * most + j];
      ended = ended || (ending && label < 0);
      const auto whole = static_cast<int32_t>(label + T(0.5));
      if (!ended && whole != blank) wanted[count++] = whole;
    }
    return count;
  }
};

#ifdef __CUDACC__
// A warp has a row.
template <typename T>
__global__ void __launch_bounds__(256)
    find_best_classes(int64_t rows, int classes, const T* scores, int32_t* best) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * 8 + threadIdx.x / 32;
  if (row >= rows) return;
  const T* const score = scores + row * classes;
  int place = lane < classes ? lane : 0;
  T most = score[place];
#pragma unroll 8
  for (int k = lane + 32; k < classes; k += 32) {
    const T value = score[k];
    place = value > most ? k : place;
    most = value > most ? value : most;
  }
  for (int step = 16; step > 0; step /= 2) {
    const T other = __shfl_xor_sync(0xffffffffu, most, step);
    const int other_place = __shfl_xor_sync(0xffffffffu, place, step);
    const bool better = other > most || (other == most && other_place < place);
    place = better ? other_place : place;
    most = better ? other : most;
  }
  if (lane == 0) best[row] = place;
}
#endif

// Scores of (rows, classes): the best class of each row, of equal ones the first.
template <typename T>
void best_classes(Context& context, const Tensor& scores, int64_t classes, int32_t* best) {
  const T* const all = scores.data<T>();
  const int64_t rows = scores.count() / classes;
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    return launch(context.gpu(), find_best_classes<T>, {static_cast<unsigned>((rows + 7) / 8), 256},
                  rows, static_cast<int>(classes), all, best);
  }
#endif
  (void)context;
#pragma omp parallel for schedule(static) if (rows > 64)
  for (int64_t row = 0; row < rows; ++row) {
    // The largest in a loop that vectorizes, then its place, out of the cache.
    const T* const score = all + row * classes;
    T most = score[0];
#pragma omp simd reduction(max : most)
    for (int64_t k = 0; k < classes; ++k) most = score[k] > most ? score[k] : most;
    const T* const found = std::find(score, score + classes, most);
    best[row] = static_cast<int32_t>(found < score + classes ? found - score : 0);
  }
}

}  // namespace crema
