// Depthwise convolution of 16-bit images on tensor cores, with a place of y for each, or for each
// second, of x. A block has 32 channels of a band of columns and walks down a stream of rows: those
// of all images one below the other, with a window's rows of zeros between. Rows are on their way
// into shared memory, in stages, long before they are needed, and lie there until their window has
// gone by, so each is read once.
//
// Products: an 8 x 8 matrix has eight neighbouring places of a row (a strip) and eight channels. A
// window's sums are its matrices times diagonal ones that hold the weights, and the gradient of the
// weights is on the diagonal of one matrix transposed times another: an eighth of the products are
// used, which is still as many as the card does outside its tensor cores, and numbers need no
// conversion to float. As zero times infinity is not a number, an infinite value spoils seven
// channels beside its own.
#pragma once

#include "base/host_device.h"
#include "kernels/conv_depthwise.cuh"

namespace crema {

constexpr int kStripChannels = 32;                 // of a block
constexpr int kStripPlace = 2 * kStripChannels;    // bytes of a place in shared memory
constexpr int kStripThreads = 4 * kStripChannels;  // of a block: a warp for each 8 channels
constexpr int kStripRows = 4;                      // of the stream that a warp computes at a time

struct StripNumbers {
  int images, height, width, channels;
  int image_height, image_width;  // of x, with stride 2 about twice those of the stream
  int band, strips;               // columns of a block's band, and strips in these
  int pitch;                      // places of a row in shared memory, a multiple of 8
  int stage_rows, steps;          // rows that arrive together, and how often those of a block do
  dim3 blocks;                    // channels, pieces of the stream, bands
  FastDivide by_padded;           // rows of an image in the stream
  FastDivide by_columns, by_two_columns;  // places of a row that are read, and twice as many
  FastDivide by_band, by_two_bands, by_strips;

  // shape: of the stream's images; window: how many of their places a sum meets along an axis;
  // zeros: rows between images; rows: that a warp computes at a time; blocks_at_once: about.
  StripNumbers(const Shape& shape, const Shape& x, int window, int zeros, int rows,
               int blocks_at_once);
  int parts() const { return static_cast<int>(blocks.y * blocks.z); }
  CREMA_HD int image_bytes(int stages) const { return stages * stage_rows * pitch * kStripPlace; }
  // Of a tensor without places beside the band.
  CREMA_HD int band_bytes(int stages) const {
    return stages * stage_rows * strips * 8 * kStripPlace;
  }
};

// What a kernel is compiled for.
struct StripKind {
  DType dtype;
  int kernel, stride;
};

// y, or with stride 1 and mirrored weights dx. bias: or null.
struct StripSums {
  const void *x, *w, *bias;
  DepthwiseEnd end;
  bool mirrored;
  void* y;
};
StripNumbers strip_sums_numbers(const ConvCase& c);
void start_strip_sums(const Gpu& gpu, const StripNumbers& n, const StripKind& kind,
                      const StripSums& sums);

// Both gradients from x and dy; dx or parts may be null: then the other one alone.
struct StripGradients {
  const void *x, *dy, *w;
  void* dx;
  float* parts;  // parts() times (taps + 1) * channels; see add_depthwise_parts
  bool bias;     // sum dy too
};
StripNumbers strip_gradients_numbers(const ConvCase& c);
void start_strip_gradients(const Gpu& gpu, const StripNumbers& n, const StripKind& kind,
                           const StripGradients& gradients);
// The same with stride 2.
StripNumbers spread_gradients_numbers(const ConvCase& c);
void start_spread_gradients(const Gpu& gpu, const StripNumbers& n, const StripKind& kind,
                            const StripGradients& gradients);

#ifdef __CUDACC__

// Chunks of eight channels change places, so that eight neighbouring places of a row in shared
// memory lie in different banks.
__device__ inline int strip_offset(int column, int chunk) {
  return column * kStripPlace + ((chunk ^ (column >> 1 & 3)) << 4);
}

// Starts copying `lines` rows from the stream's row `first` on, with columns from `left` on; zeros
// where there is no image. kSpread 2: of x with stride 2, two rows and columns for one of the
// stream; odd columns go `odd` places behind the even ones.
template <int kSpread, typename T>
__device__ void load_stream(const StripNumbers& n, const FastDivide& by_columns, const T* data,
                            int first, int lines, int left, uint32_t to, int row_bytes,
                            int odd = 0) {
  const int chunk = static_cast<int>(threadIdx.x) % 4;
  const int channel = static_cast<int>(blockIdx.x) * kStripChannels + chunk * 8;
  const int places = lines * static_cast<int>(by_columns.divisor);
  for (int place = static_cast<int>(threadIdx.x) / 4; place < places; place += kStripThreads / 4) {
    int column, row;
    const int line = by_columns.split(place, column), at = first + line / kSpread;
    const int image = n.by_padded.split(max(at, 0), row);
    const int y = row * kSpread + line % kSpread, x = left + column;
    const int height = kSpread == 1 ? n.height : n.image_height;
    const int width = kSpread == 1 ? n.width : n.image_width;
    const bool inside = at >= 0 && image < n.images && row < n.height && y < height && x >= 0 &&
                        x < width && channel < n.channels;
    const int64_t from = (image * height + y) * width + x;
    const int goal = kSpread == 1 ? column : column % 2 * odd + column / 2;
    copy_async<16>(to + line * row_bytes + strip_offset(goal, chunk),
                   inside ? data + from * n.channels + channel : data, inside);
  }
}

// Zeros in columns from `from` to `to` of all rows of a tensor in shared memory.
__device__ inline void clear_columns(unsigned char* memory, int rows, int row_bytes, int from,
                                     int to) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * 4; i += kStripThreads) {
    for (int column = from; column < to; ++column) {
      *reinterpret_cast<uint4*>(memory + i / 4 * row_bytes + column * kStripPlace + i % 4 * 16) =
          uint4{};
    }
  }
}

// The last strip may go beyond the band. What it meets there of dy is multiplied with zeros of x,
// and must be a number.
__device__ inline void clear_beside(const StripNumbers& n, unsigned char* memory, int rows,
                                    int row_bytes, int window) {
  const int columns = static_cast<int>(n.by_columns.divisor), reached = n.strips * 8 + window - 1;
  clear_columns(memory, rows, row_bytes, columns, min(reached, n.pitch));
  clear_columns(memory, rows, row_bytes, 0, reached - n.pitch);
}

// Two places of a strip for the gradient of the bias: 1 where they belong to the band.
template <typename T>
__device__ uint32_t strip_ones(const StripNumbers& n, int left, int strip) {
  const int column = strip * 8 + static_cast<int>(threadIdx.x) % 4 * 2;
  const int end = min(n.band, n.width - left);
  const Pack<T, 2> pair{T(column < end ? 1.f : 0.f), T(column + 1 < end ? 1.f : 0.f)};
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// The taps of the block's channels, [tap][channel]; backwards when mirrored.
template <typename T, int kTaps>
__device__ void load_strip_weights(const StripNumbers& n, const T* w, bool mirrored, T* weights) {
  const int first = static_cast<int>(blockIdx.x) * kStripChannels;
  for (int i = static_cast<int>(threadIdx.x); i < kStripChannels * kTaps; i += kStripThreads) {
    const int channel = i / kTaps, tap = i % kTaps;
    weights[(mirrored ? kTaps - 1 - tap : tap) * kStripChannels + channel] =
        first + channel < n.channels ? w[static_cast<int64_t>(first) * kTaps + i] : T(0.f);
  }
}

// A thread's part in the sums over windows of a warp: place lane / 4 of the strip, eight channels
// from lane % 4 * 8 on. Its pairs of channels i make the matrices i with those of the other lanes.
template <typename T, int kKernel>
struct StripWindow {
  static constexpr int kTaps = kKernel * kKernel;
  int shift[kKernel];  // to what the taps of a row meet, in bytes
  uint32_t mask;       // which of a pair of weights is on the diagonal here
  uint32_t weights;    // in shared memory, from this thread's channels on

  __device__ explicit StripWindow(const T* shared_weights) {
    const int lane = static_cast<int>(threadIdx.x) % 32, place = lane / 4, chunk = lane % 4;
#pragma unroll
    for (int s = 0; s < kKernel; ++s) shift[s] = strip_offset(place + s, chunk);
    mask = chunk != place / 2 ? 0 : place % 2 ? 0xffff0000u : 0x0000ffffu;
    weights = shared_address(shared_weights + chunk * 8);
  }

  __device__ void load(const unsigned char* row, uint32_t (&to)[kKernel][4]) const {
#pragma unroll
    for (int s = 0; s < kKernel; ++s) {
      const uint4 four = *reinterpret_cast<const uint4*>(row + shift[s]);
      to[s][0] = four.x, to[s][1] = four.y, to[s][2] = four.z, to[s][3] = four.w;
    }
  }
  // Read each time: there are no registers for all of them.
  __device__ void diagonal(int tap, uint32_t (&to)[4]) const {
    load_again(to, weights + tap * kStripPlace);
#pragma unroll
    for (uint32_t& pair : to) pair &= mask;
  }

  // above, below: rows of places; r: which row of the window they are.
  __device__ void add_row(const uint32_t (&above)[kKernel][4], const uint32_t (&below)[kKernel][4],
                          int r, float (&sums)[4][4]) const {
#pragma unroll
    for (int s = 0; s + 1 < kKernel; s += 2) {
      uint32_t left[4], right[4];
      diagonal(r * kKernel + s, left);
      diagonal(r * kKernel + s + 1, right);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t a[4] = {above[s][i], below[s][i], above[s + 1][i], below[s + 1][i]};
        multiply_add<T>(sums[i], a, left[i], right[i]);
      }
    }
    uint32_t last[4];
    diagonal(r * kKernel + kKernel - 1, last);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t a[2] = {above[kKernel - 1][i], below[kKernel - 1][i]};
      multiply_add<T>(sums[i], a, last[i]);
    }
  }

  // The same for two rows whose windows begin two rows apart: `here` rows from upper on, those
  // after them from lower on, both as if the first row were there.
  __device__ void add_spread(const unsigned char* upper, const unsigned char* lower, int here,
                             int row_bytes, float (&sums)[4][4]) const {
    uint32_t rows[3][kKernel][4];
#pragma unroll
    for (int j = 0; j < kKernel + 2; ++j) {
      load((j < here ? upper : lower) + j * row_bytes, rows[j % 3]);
      if (j >= 2) add_row(rows[(j - 2) % 3], rows[j % 3], j - 2, sums);
    }
  }

  // sums[p][i]: the pair i of row 2 * p in the first two numbers, of row 2 * p + 1 in the others.
  // upper: the strip in the first row that the windows reach; lower: four rows below.
  __device__ void add(const unsigned char* upper, const unsigned char* lower, int row_bytes,
                      float (&sums)[kStripRows / 2][4][4]) const {
    uint32_t rows[2][kKernel][4];
    load(upper, rows[0]);
#pragma unroll
    for (int j = 0; j < kStripRows + kKernel - 2; ++j) {
      const int next = j + 1;
      load((next < 4 ? upper : lower) + next % 4 * row_bytes, rows[next % 2]);
#pragma unroll
      for (int p = 0; p < kStripRows / 2; ++p) {
        const int r = j - 2 * p;
        if (r >= 0 && r < kKernel) add_row(rows[j % 2], rows[next % 2], r, sums[p]);
      }
    }
  }
};

// Writes a warp's sums: rows of the stream from `first` on, columns from `left` on.
template <int kRows, typename T>
__device__ void store_strip(const StripNumbers& n, int first, int left, int strip,
                            const float (&sums)[kRows / 2][4][4], const DepthwiseEnd& end, T* to) {
  const int lane = static_cast<int>(threadIdx.x) % 32, column = strip * 8 + lane / 4;
  const int x = left + column;
  const int channel = static_cast<int>(blockIdx.x) * kStripChannels + lane % 4 * 8;
  if (column >= n.band || x >= n.width || channel >= n.channels) return;
#pragma unroll
  for (int y = 0; y < kRows; ++y) {
    int row;
    const int image = n.by_padded.split(first + y, row);
    if (image >= n.images || row >= n.height) continue;
    Pack<T, 8> out;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const float sum = sums[y / 2][k / 2][y % 2 * 2 + k % 2];
      out.v[k] = T(end.relu && sum < 0 ? end.slope * sum : sum);
    }
    const int64_t place = (image * n.height + row) * n.width + x;
    *reinterpret_cast<Pack<T, 8>*>(to + place * n.channels + channel) = out;
  }
}

// Calls load(stage, slot) for the stages of a block, as many as are to be on their way, and
// compute(step, slot) for each step, when that stage and the next one have arrived.
template <int kStages, typename Load, typename Compute>
__device__ void over_stream(int steps, const Load& load, const Compute& compute) {
  const auto start = [&](int stage) {
    if (stage <= steps) load(stage, stage % kStages);
    end_copies();
  };
  for (int stage = 0; stage < kStages - 1; ++stage) start(stage);
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<kStages - 3>();
    __syncthreads();
    start(step + kStages - 1);
    compute(step, step % kStages);
  }
}

#endif

}  // namespace crema
