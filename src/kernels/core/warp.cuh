// Reductions in a warp and in a block, and detection of the last of many blocks. Only for device
// code.
#pragma once

#include <cstdint>

namespace crema {

struct Plus {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Larger {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// Reduces over all 32 lanes; every lane gets the result.
template <typename T, typename Combine>
__device__ T warp_all(T value, Combine combine) {
  for (int step = 16; step > 0; step /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}

// Reduces over all threads of a block; every thread gets the result. blockDim.x is a multiple of
// 32, at most 1024; every thread must call it. Calls may follow each other directly.
template <typename T, typename Combine>
__device__ T block_all(T value, Combine combine) {
  __shared__ T of_warp[32];
  value = warp_all(value, combine);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) value = combine(value, of_warp[warp]);
  return value;
}

// True in every thread of the last of `count` blocks to call it, which also resets the counter to
// zero.
__device__ inline bool last_of(unsigned* counter, int count) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1u) == static_cast<unsigned>(count) - 1;
    if (last) *counter = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

}  // namespace crema
