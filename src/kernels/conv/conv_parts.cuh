// The final reduction of a weight gradient from the partial sums of the thread blocks. Only for .cu
// files of a CUDA build.
#pragma once

#include <cstdint>

namespace crema {

// Adds up `count` parts of `all` elements each, a multiple of 32, in a fixed order and calls
// store(element, sum). A block of eight warps has 32 elements; each warp takes every eighth part.
template <typename Store>
__global__ void __launch_bounds__(256)
    add_parts(int64_t all, const float* parts, int count, Store store) {
  __shared__ float sums[8][32];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int element = static_cast<int>(blockIdx.x) * 32 + lane;
  float sum = 0;
#pragma unroll 4
  for (int part = warp; part < count; part += 8) sum += parts[part * all + element];
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp > 0) return;
  for (int other = 1; other < 8; ++other) sum += sums[other][lane];
  store(element, sum);
}

}  // namespace crema
