// The parameters and loads of the kernels of stem_7x7s2_gpu.cu: a convolution of stride 2 on images
// of four channels in memory. Two pixels are a chunk of 16 bytes, a matrix row for ldmatrix.
// Windows of adjacent positions start one chunk apart, so the image's rows in shared memory already
// are the operand matrix: nothing is gathered, and each byte is loaded once per band of positions.
#pragma once

#include "base/host_device.h"
#include "kernels/conv/conv.h"
#include "kernels/core/divisor.h"
#include "kernels/core/mma.cuh"
#ifdef __CUDACC__
#include "kernels/core/warp.cuh"
#endif

namespace crema {

constexpr int kStem7x7Kernel = 7;    // rows of the kernel
constexpr int kStem7x7Chunks = 4;    // width of a window, including zeros at its ends
constexpr int kStem7x7Outputs = 64;  // per thread block
constexpr int kStem7x7Threads = 256;
// Rows of positions that a block of the forward kernel computes at a time: with fewer, more of the
// image's rows would be loaded twice.
constexpr int kFpropBand = 4;
constexpr int kStem7x7Positions = 16;  // adjacent positions per product
// Elements of an output's weights in a window, including zeros.
constexpr int kStem7x7Depth = kStem7x7Kernel * kStem7x7Chunks * 8;

struct Stem7x7s2Params {
  int images, height, width;  // of x; width in chunks
  int out_height, out_width, outputs;
  int kernel_width;  // in pixels
  int shift;         // pixels of a window before the kernel: it starts with a whole chunk
  int left, top;     // chunks and rows of padding before the image
  int pitch;         // chunks per row in shared memory
  int tiles;         // of kStem7x7Positions each, per row of positions
  Divisor by_pitch;

  explicit Stem7x7s2Params(const ConvCase& c);
};

// Rows of the image under a band.
CREMA_HD constexpr int rows_under(int band) { return 2 * (band - 1) + kStem7x7Kernel; }

#ifdef __CUDACC__

// Starts copying the rows under a band; zeros outside of the image.
template <typename T, int kBand>
__device__ void load_rows(const Stem7x7s2Params& n, const T* x, int image, int first_position,
                          uint32_t to) {
  const int first = 2 * first_position - n.top;
  for (int at = static_cast<int>(threadIdx.x); at < rows_under(kBand) * n.pitch;
       at += kStem7x7Threads) {
    int chunk;
    const int y = first + n.by_pitch.split(at, chunk);
    chunk -= n.left;
    const bool inside = y >= 0 && y < n.height && chunk >= 0 && chunk < n.width;
    const int64_t from = (static_cast<int64_t>(image) * n.height + y) * n.width + chunk;
    copy_async<16>(to + at * 16, x + (inside ? from * 8 : 0), inside);
  }
}

// The per-channel sums and their reduction.
struct Stem7x7s2Sums {
  float* sums;  // (2, outputs)
  float* parts;
  unsigned* counters;

  // For all threads. totals: of eight channels, in every fourth lane of a warp and in warps two
  // apart. The last block adds the blocks' parts.
  __device__ void add(const Stem7x7s2Params& n, float (*shared)[2][32],
                      float (&totals)[2][4][2]) const {
    const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
    __syncthreads();
#pragma unroll
    for (int s = 0; s < 2; ++s) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          float total = totals[s][j][k];
          for (int apart = 4; apart < 32; apart *= 2) total += __shfl_xor_sync(~0u, total, apart);
          if (lane < 4) shared[warp][s][lane * 8 + j * 2 + k] = total;
        }
      }
    }
    __syncthreads();
    // A thread has a sum of one channel; each half of the threads adds every second block's part.
    const int s = thread / kStem7x7Outputs % 2, c = thread % kStem7x7Outputs, half = thread / 128;
    const int64_t at = s * n.outputs + blockIdx.y * kStem7x7Outputs + c;
    if (half == 0) {
      float total = 0;
      for (int row = 0; row < kFpropBand; ++row) total += shared[row * 2 + c / 32][s][c % 32];
      parts[blockIdx.x * int64_t{2} * n.outputs + at] = total;
    }
    if (!last_of(&counters[blockIdx.y], static_cast<int>(gridDim.x))) return;
    float total = 0;
#pragma unroll 8
    for (int block = half; block < static_cast<int>(gridDim.x); block += 2)
      total += __ldcg(&parts[block * int64_t{2} * n.outputs + at]);
    float* const other = &shared[0][0][0];
    if (half == 1) other[thread % 128] = total;
    __syncthreads();
    if (half == 0) sums[at] = total + other[thread];
  }
};

#endif

}  // namespace crema
