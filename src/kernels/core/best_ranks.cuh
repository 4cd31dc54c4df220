// Selects and sorts the best of many ranks (kernels/core/rank.h) in a thread block. Only for device
// code.
#pragma once

#include <cstdint>

namespace crema {

// The smallest of the `maximum` largest values of rank(i), i < count, or a number between it and
// the next smaller one. `maximum` must be above 0, at least so many ranks nonzero, and those
// distinct. All threads of the block, at least 32, must call it.
template <typename Rank>
__device__ uint64_t min_of_best(int count, int maximum, const Rank& rank) {
  __shared__ int histogram[256], chosen, left_in_chosen;
  uint64_t minimum = 0;
  int left = maximum;  // to select among those that share the digits known so far
  bool whole = false;
#pragma unroll 1
  for (int shift = 56; shift >= 0 && !whole; shift -= 8) {
    for (int i = threadIdx.x; i < 256; i += blockDim.x) histogram[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
      const uint64_t r = rank(i);
      const bool alike = shift == 56 || r >> (shift + 8) == minimum >> (shift + 8);
      if (r != 0 && alike) atomicAdd(histogram + (r >> shift & 255), 1);
    }
    __syncthreads();
    if (threadIdx.x < 32) {  // each lane has eight digits, starting with the largest
      int digit = 255 - 8 * static_cast<int>(threadIdx.x), own = 0;
      for (int k = 0; k < 8; ++k) own += histogram[digit - k];
      int before = own;
      for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, before, step);
        before += static_cast<int>(threadIdx.x) >= step ? other : 0;
      }
      before -= own;
      if (before < left && left <= before + own) {
#pragma unroll 1
        while (before + histogram[digit] < left) before += histogram[digit--];
        chosen = digit;
        left_in_chosen = left - before;
      }
    }
    __syncthreads();
    minimum |= static_cast<uint64_t>(chosen) << shift;
    left = left_in_chosen;
    whole = left == histogram[chosen];
    __syncthreads();
  }
  return minimum > 0 ? minimum : 1;
}

// Sorts `count` ranks in shared memory in descending order; `count` is a power of two.
__device__ inline void sort_ranks(uint64_t* ranks, int count) {
  __syncthreads();
#pragma unroll 1
  for (int size = 2; size <= count; size *= 2) {
#pragma unroll 1
    for (int step = size / 2; step > 0; step /= 2) {
      for (int pair = threadIdx.x; pair < count / 2; pair += blockDim.x) {
        const int i = 2 * pair - (pair & (step - 1)), j = i + step;
        const uint64_t a = ranks[i], b = ranks[j];
        if ((a < b) == ((i & size) == 0)) {
          ranks[i] = b;
          ranks[j] = a;
        }
      }
      __syncthreads();
    }
  }
}

}  // namespace crema
