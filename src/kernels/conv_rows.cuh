// How the kernels of conv_rows_gpu.cu see a convolution of stride 2 on images of four channels in
// memory. Two pixels are 16 bytes, a chunk: a row of a matrix for matrix loads. Windows of
// neighbouring places begin a chunk apart, so the image's rows, as they lie in shared memory, are
// the matrix that a product wants: nothing is gathered, each byte is fetched once for a band of
// places.
#pragma once

#include "base/host_device.h"
#include "kernels/conv.h"
#include "kernels/mma.cuh"

namespace crema {

constexpr int kRowsKernel = 7;    // rows of the kernel
constexpr int kRowsChunks = 4;    // that a window is wide, zeros at its ends included
constexpr int kRowsOutputs = 64;  // that a block of threads computes
constexpr int kRowsThreads = 256;
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

#endif

}  // namespace crema
