// The tiling of channels-last images in depthwise convolutions. A thread computes two adjacent
// channels and walks down a strip, a few columns of an image; it keeps what it needs of the rows
// above in registers, and loads the next rows while it computes one. So every element is read once,
// except for the columns next to a strip and the rows above it, which are in the cache. A block has
// a few strips of the same channels, at most a cache line of them. Bulk tensor copies of whole rows
// need fewer instructions, but were as fast at 56x56 and slower elsewhere (H200).
//
// With a dilation, the dilation * dilation sets of positions do not interact: each is treated as an
// image of its own, a sheet.
#pragma once

#include "base/host_device.h"
#include "device/gpu.h"
#include "kernels/conv/conv.h"
#include "kernels/core/divisor.h"
#include "kernels/core/mma.cuh"

namespace crema {

constexpr int kDepthwiseThreads = 128;  // per block, at most
constexpr int kDepthwiseLanes = 32;     // of these along the channels, at most

// The extent of a walk in steps: the first, and one past the last, along an axis.
struct DepthwiseRange {
  int first, end;
  // For forward, and the data gradient with stride 1.
  static DepthwiseRange of_sums(int64_t positions, int dilation) {
    return {0, static_cast<int>((positions + dilation - 1) / dilation)};
  }
};

struct DepthwiseTiling {
  int channels, dilation;
  int lanes;             // threads of a block along the channels
  int strips_per_block;  // at the same time; a thread has one
  int rows;              // steps per strip, at most
  int strip_count;       // per piece of the channels
  DepthwiseRange down, across;
  dim3 blocks;  // pieces of the channels, blocks per piece
  bool full;    // the blocks take most of the block slots of a large card
  Divisor by_lanes, by_tiles, by_pieces, by_phases, by_dilation;

  // width: columns of a strip; before: rows that it processes before its first result; resident:
  // blocks per multiprocessor; once: one strip per thread, else as many blocks as the card holds.
  DepthwiseTiling(int images, int channels, int dilation, DepthwiseRange down,
                  DepthwiseRange across, int width, int before, int resident, bool once);
  dim3 threads() const { return dim3(static_cast<unsigned>(lanes * strips_per_block)); }
};

struct DepthwiseImage {
  int height, width;
};

// Template parameters of a kernel.
struct DepthwiseKind {
  DType dtype;
  int kernel, stride;
};

// Calls body<T, kKernel, kStride>() for this kind; only 16-bit types, or float32 too (kFloats).
template <bool kFloats, typename Body>
void with_depthwise_kind(const DepthwiseKind& kind, const Body& body) {
  const auto of_type = [&]<typename T>() {
    if (kind.kernel == 3) {
      kind.stride == 1 ? body.template operator()<T, 3, 1>() : body.template operator()<T, 3, 2>();
    } else {
      kind.stride == 1 ? body.template operator()<T, 5, 1>() : body.template operator()<T, 5, 2>();
    }
  };
  if (kind.dtype == DType::f16) return of_type.template operator()<Half>();
  if (kind.dtype == DType::bf16) return of_type.template operator()<BFloat16>();
  if constexpr (kFloats) of_type.template operator()<float>();
}

// Calls body<kGang>(): kGang adjacent threads copy together, eight channels of 16 bits if there is
// a multiple of eight, each thread those of every kGang-th position; 1: each its own pairs.
template <typename T, typename Body>
void with_depthwise_gang(int channels, bool pays, const Body& body) {
  if (sizeof(T) == 2 && channels % 8 == 0 && pays) {
    body.template operator()<sizeof(T) == 2 ? 4 : 1>();
  } else {
    body.template operator()<1>();
  }
}

// The epilogue of a position of y.
struct DepthwiseEnd {
  bool relu;
  float slope;
};

// y from x; or dx from dy, with stride 1 and mirrored weights. top, left: distance from a window's
// first position to the image's.
struct DepthwiseSums {
  const void *x, *w, *bias;  // bias: may be null
  DepthwiseImage in, out;
  int top, left;
  DepthwiseEnd end;
  bool mirrored;
  void* y;
};
DepthwiseTiling depthwise_sums_tiling(const ConvCase& c, bool of_dx);
void start_depthwise_sums(const Gpu& gpu, const DepthwiseTiling& n, const DepthwiseKind& kind,
                          const DepthwiseSums& sums);

// Both gradients from x and dy; dx or dw may be null: then only the other one.
struct DepthwiseGradients {
  const void *x, *dy, *w;
  DepthwiseImage in, out;  // of x and of dy
  int top, left;           // pads
  void* dx;
  float *dw, *db, *parts;  // db: may be null; parts: depthwise_parts() floats, unused if it adds
  bool adds;               // to dw and db, in any order
  bool accumulate_w, accumulate_b;
};
// Steps along an axis that contain positions of x, and with a bias those that own one of dy: step i
// owns position i - (kernel - 1) / 2 / stride.
DepthwiseRange depthwise_gradient_steps(const ConvCase& c, size_t axis);
DepthwiseTiling depthwise_gradients_tiling(const ConvCase& c);
int64_t depthwise_parts(const DepthwiseTiling& n, int taps);
void start_depthwise_gradients(const Gpu& gpu, const DepthwiseTiling& n, const DepthwiseKind& kind,
                               const DepthwiseGradients& gradients);
// False: fused with dx it would need too many registers.
CREMA_HD constexpr bool fuses_depthwise_gradients(int kernel, int stride) {
  return kernel == 3 || stride == 2;
}

#ifdef __CUDACC__

// Two adjacent channels as stored in memory.
template <typename T>
struct ChannelPair {
  uint32_t bits = 0;
  __device__ float2 floats() const {
    if constexpr (std::is_same_v<T, Half>) {
      return __half22float2(*reinterpret_cast<const __half2*>(&bits));
    } else {
      return {__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u)};
    }
  }
  ChannelPair() = default;
  __device__ explicit ChannelPair(float2 v) {
    if constexpr (std::is_same_v<T, Half>) {
      *reinterpret_cast<__half2*>(&bits) = __float22half2_rn(v);
    } else {
      *reinterpret_cast<__nv_bfloat162*>(&bits) = __float22bfloat162_rn(v);
    }
  }
};
template <>
struct alignas(8) ChannelPair<float> {
  float2 both{0, 0};
  __device__ float2 floats() const { return both; }
  ChannelPair() = default;
  __device__ explicit ChannelPair(float2 v) : both(v) {}
};

__device__ inline void add_product(float2& sum, float2 a, float2 b) {
  sum.x += a.x * b.x, sum.y += a.y * b.y;
}

// copy_async if `bit` is set, else zeros. In assembly, to get a predicated instruction; a size
// selected beforehand does not give one.
template <int kBytes>
__device__ void copy_where(uint32_t to, const void* from, uint32_t bit) {
  asm volatile(
      "{\n.reg .pred wanted;\n.reg .b32 size;\nsetp.ne.b32 wanted, %3, 0;\n"
      "selp.b32 size, %2, 0, wanted;\ncp.async.ca.shared.global [%0], [%1], %2, size;\n}" ::"r"(to),
      "l"(from), "n"(kBytes), "r"(bit));
}

struct DepthwiseStrip {
  int image, down, across;  // position of the sheet's first element
  int row, column;          // the first step

  __device__ DepthwiseStrip(const DepthwiseTiling& n, int strip, int width) {
    int tile, piece, phase;
    int rest = n.by_tiles.split(strip, tile);
    rest = n.by_pieces.split(rest, piece);
    image = n.by_phases.split(rest, phase);
    down = n.by_dilation.split(phase, across);
    row = n.down.first + piece * n.rows, column = n.across.first + tile * width;
  }
};

// Where a strip's rows begin in an image: offset, pitch and column mask of the first; the same for
// every tensor of this shape.
template <int kPositions>
struct DepthwiseRowStart {
  int row, height, dilation, step;  // row: may be outside of the image; step: between positions
  int64_t row_step, first;          // in elements
  uint32_t inside;                  // one bit per column

  __device__ DepthwiseRowStart(const DepthwiseTiling& n, const DepthwiseImage& image, int number,
                               int row_, int column, int channel)
      : row(row_), height(image.height), dilation(n.dilation), step(n.dilation * n.channels) {
    row_step = static_cast<int64_t>(step) * image.width;
    first = static_cast<int64_t>((number * image.height + row) * image.width + column) * n.channels;
    first += channel;
    const auto columns_to = [&](int end) {
      return min(n.by_dilation.quotient(max(end, 0) + dilation - 1), kPositions);
    };
    inside = (1u << columns_to(image.width - column)) - (1u << columns_to(-column));
  }
};

// Slots of a ring row that `positions` positions take.
CREMA_HD constexpr int depthwise_slots(int positions, int gang) {
  return (positions + gang - 1) / gang * gang;
}

// A cursor over rows of a tensor.
template <typename T, int kPositions, int kGang = 1>
struct DepthwiseRowCursor {
  T* position;
  DepthwiseRowStart<kPositions> at;  // of the current row, less `first`

  __device__ DepthwiseRowCursor(const DepthwiseRowStart<kPositions>& start, T* data)
      : position(data + start.first), at(start) {
    const int rank = static_cast<int>(threadIdx.x) % kGang;
    position += rank * (at.step - 2), at.inside >>= rank;
  }

  // Starts copying the row's positions to `to`, each to its position of the ring's slot; zeros
  // outside of the image.
  __device__ void fetch(uint32_t to) {
    constexpr int kPairBytes = 2 * static_cast<int>(sizeof(T));
    const uint32_t mask = columns();
#pragma unroll
    for (int i = 0; i < kPositions; i += kGang) {
      copy_where<kGang * kPairBytes>(to + i * kDepthwiseThreads * kPairBytes,
                                     position + i * at.step, mask & 1u << i);
    }
    next();
  }
  __device__ void store(const float2 (&values)[kPositions]) {
    const uint32_t mask = columns();
#pragma unroll
    for (int i = 0; i < kPositions; ++i) {
      if (mask >> i & 1)
        *reinterpret_cast<ChannelPair<T>*>(position + i * at.step) = ChannelPair<T>(values[i]);
    }
    next();
  }

 private:
  __device__ uint32_t columns() const { return at.row >= 0 && at.row < at.height ? at.inside : 0; }
  __device__ void next() { position += at.row_step, at.row += at.dilation; }
};

// Ring buffer in shared memory for rows in flight, a few ahead of the computed one. Each thread has
// a column of it, filled by itself or its gang, so none waits for other warps. With gangs all
// threads of a warp fill and take the same number of rows.
template <typename T, int kPairs, int kSlots, int kGang = 1>
struct DepthwiseRing {
  static constexpr int kPairBytes = 2 * static_cast<int>(sizeof(T));
  static constexpr int kStep = kDepthwiseThreads * kPairBytes, kSlotBytes = kPairs * kStep;
  static constexpr int kBytes = kSlots * kSlotBytes;
  unsigned char* own;
  uint32_t address;
  int to = 0, from = 0;

  __device__ explicit DepthwiseRing(unsigned char* memory)
      : own(memory + threadIdx.x * kPairBytes), address(shared_address(own)) {
    address += static_cast<int>(threadIdx.x) % kGang * (kStep - kPairBytes);
    if constexpr (kGang > 1) __syncwarp();  // the last ring's rows have been read
  }
  // The slot that is filled next. kSlots - 1 are filled before the first is read.
  __device__ uint32_t slot() const { return address + to; }
  __device__ void fill() {
    end_copies();
    to = to + kSlotBytes == kBytes ? 0 : to + kSlotBytes;
  }
  __device__ void wait() const {
    wait_for_copies<kSlots - 2>();
    if constexpr (kGang > 1) __syncwarp();
  }
  __device__ float2 operator[](int i) const {
    return reinterpret_cast<const ChannelPair<T>*>(own + from + i * kStep)->floats();
  }
  __device__ void take() { from = from + kSlotBytes == kBytes ? 0 : from + kSlotBytes; }
};

// Loads the weights of a thread's channels, reversed if mirrored. All threads of a block call it.
// All loads that a thread makes for the block are issued at once.
template <typename T, int kKernel>
__device__ void load_taps(const DepthwiseTiling& n, const T* w, int lane, bool mirrored,
                          float2 (&taps)[kKernel][kKernel]) {
  constexpr int kTaps = kKernel * kKernel, kMinStrips = kDepthwiseThreads / kDepthwiseLanes;
  constexpr int kRounds = (kTaps + kMinStrips - 1) / kMinStrips;
  __shared__ __align__(8) T shared[2 * kDepthwiseLanes * kTaps];
  const int first = static_cast<int>(blockIdx.x) * n.lanes * 2;
  const int count = min(2 * n.lanes, n.channels - first) / 2 * kTaps;
  const auto* const from =
      reinterpret_cast<const ChannelPair<T>*>(w + static_cast<int64_t>(first) * kTaps);
  auto* const pairs = reinterpret_cast<ChannelPair<T>*>(shared);
  ChannelPair<T> values[kRounds];
  const auto each_round = [&](const auto& body) {
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      const int i = static_cast<int>(threadIdx.x + round * blockDim.x);
      if (i < count) body(values[round], i);
    }
  };
  each_round([&](ChannelPair<T>& value, int i) { value = from[i]; });
  each_round([&](const ChannelPair<T>& value, int i) { pairs[i] = value; });
  __syncthreads();
  const T* const own = shared + 2 * lane * kTaps;
#pragma unroll
  for (int i = 0; i < kTaps; ++i) {
    const int tap = mirrored ? kTaps - 1 - i : i;
    taps[i / kKernel][i % kKernel] = {static_cast<float>(own[tap]),
                                      static_cast<float>(own[kTaps + tap])};
  }
}

#endif

}  // namespace crema
