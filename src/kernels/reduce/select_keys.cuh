// Selection of the k highest of many sort keys (kernels/reduce/sort_key.h) and their sorting, in a
// thread block. Only for device code.
#pragma once

#include <cstdint>

namespace crema {

// Radix select from the highest digit on, eight bits at a time. The k-th highest of key_at(i), i <
// count, or a number between it and the next lower one: exactly k keys reach it. k must be above 0,
// at least so many keys nonzero, and those distinct. All threads of the block, at least 32, must
// call it.
template <typename KeyAt>
__device__ uint64_t select_kth_key(int count, int k, const KeyAt& key_at) {
  __shared__ int histogram[256], chosen, left_in_chosen;
  uint64_t kth = 0;  // its digits so far
  int left = k;      // to select among the keys that share those digits
  bool whole = false;
#pragma unroll 1
  for (int shift = 56; shift >= 0 && !whole; shift -= 8) {
    for (int i = threadIdx.x; i < 256; i += blockDim.x) histogram[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
      const uint64_t key = key_at(i);
      const bool alike = shift == 56 || key >> (shift + 8) == kth >> (shift + 8);
      if (key != 0 && alike) atomicAdd(histogram + (key >> shift & 255), 1);
    }
    __syncthreads();
    if (threadIdx.x < 32) {  // each lane has eight digits, starting with the largest
      int digit = 255 - 8 * static_cast<int>(threadIdx.x), own = 0;
      for (int j = 0; j < 8; ++j) own += histogram[digit - j];
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
    kth |= static_cast<uint64_t>(chosen) << shift;
    left = left_in_chosen;
    whole = left == histogram[chosen];
    __syncthreads();
  }
  return kth > 0 ? kth : 1;
}

// Bitonic sort of `count` keys in shared memory, the highest first; `count` is a power of two.
__device__ inline void bitonic_sort(uint64_t* keys, int count) {
  __syncthreads();
#pragma unroll 1
  for (int size = 2; size <= count; size *= 2) {
#pragma unroll 1
    for (int step = size / 2; step > 0; step /= 2) {
      for (int pair = threadIdx.x; pair < count / 2; pair += blockDim.x) {
        const int i = 2 * pair - (pair & (step - 1)), j = i + step;
        const uint64_t a = keys[i], b = keys[j];
        if ((a < b) == ((i & size) == 0)) {
          keys[i] = b;
          keys[j] = a;
        }
      }
      __syncthreads();
    }
  }
}

}  // namespace crema
