// How the kernels of stem_7x7s2_gpu.cu see a convolution of stride 2 on images of four channels in
// memory. Two pixels are 16 bytes, a chunk: a row of a matrix for matrix loads. Windows of
// neighbouring places begin a chunk apart, so the image's rows, as they lie in shared memory, are
// the matrix that a product wants: nothing is gathered, each byte is fetched once for a band of
// places.
#pragma once

#include "base/host_device.h"
#include "kernels/conv/conv.h"
#include "kernels/core/mma.cuh"
#ifdef __CUDACC__
#include "kernels/core/warp.cuh"
#endif

namespace crema {

constexpr int kRowsKernel = 7;    // rows of the kernel
constexpr int kRowsChunks = 4;    // that a window is wide, zeros at its ends included
constexpr int kRowsOutputs = 64;  // that a block of threads computes
constexpr int kRowsThreads = 256;
// Rows of places that a block of the forward kernel computes at a time: fewer would need more of
// the image's rows twice.
constexpr int kForwardBand = 4;
constexpr int kRowsPlaces = 16;  // neighbours that a product takes at once
// Elements of an output's weights in a window, zeros included.
constexpr int kRowsDepth = kRowsKernel * kRowsChunks * 8;

struct RowsNumbers {
  int images, height, width;  // of x; width in chunks
  int out_height, out_width, outputs;
  int kernel_width;  // in pixels
  int shift;         // pixels of a window in front of the kernel: it begins with a whole chunk
  int left, top;     // chunks and rows of zeros in front of the image
  int pitch;         // chunks of a row in shared memory
  int tiles;         // times kRowsPlaces: a row of places
  FastDivide by_pitch;

  explicit RowsNumbers(const ConvCase& c);
};

// Rows of the image under a band of rows of places.
CREMA_HD constexpr int rows_under(int band) { return 2 * (band - 1) + kRowsKernel; }

#ifdef __CUDACC__

// Starts copying the rows under a band, zeros where there is no image.
template <typename T, int kBand>
__device__ void load_rows(const RowsNumbers& n, const T* x, int image, int first_place,
                          uint32_t to) {
  const int first = 2 * first_place - n.top;
  for (int at = static_cast<int>(threadIdx.x); at < rows_under(kBand) * n.pitch;
       at += kRowsThreads) {
    int chunk;
    const int y = first + n.by_pitch.split(at, chunk);
    chunk -= n.left;
    const bool inside = y >= 0 && y < n.height && chunk >= 0 && chunk < n.width;
    const int64_t from = (static_cast<int64_t>(image) * n.height + y) * n.width + chunk;
    copy_async<16>(to + at * 16, x + (inside ? from * 8 : 0), inside);
  }
}

// Where the sums of channels go.
struct RowsSums {
  float* sums;  // (2, outputs)
  float* parts;
  unsigned* counters;

  // Of all threads: totals of eight channels that every fourth lane of a warp has, and warps that
  // are two apart. The last block adds the blocks' parts.
  __device__ void add(const RowsNumbers& n, float (*shared)[2][32],
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
    // A thread has a sum of a channel; the other half of them has every second block's part.
    const int s = thread / kRowsOutputs % 2, c = thread % kRowsOutputs, half = thread / 128;
    const int64_t at = s * n.outputs + blockIdx.y * kRowsOutputs + c;
    if (half == 0) {
      float total = 0;
      for (int row = 0; row < kForwardBand; ++row) total += shared[row * 2 + c / 32][s][c % 32];
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
