// Interpolation on the GPU. Forward, a thread has a pack of channels of an output pixel; where
// channels do not fill packs, a block has a row of outputs, whose interpolated source row it
// computes in shared memory. Backward, a block has some columns of some source rows: it first sums
// the output rows with their weights, then their columns.
#include <algorithm>

#include "base/ceil_div.h"
#include "device/launch.h"
#include "kernels/core/divisor.h"
#include "kernels/move/interpolate_taps.h"
#include "kernels/reduce/column_reduce.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kSharedBytes = 48 << 10;
// Floats that a gradient block sums, where it can choose: per row, and in all.
constexpr int kLineFloats = 2048, kSharedFloats = 6144;

using Line = InterpolationLine<float>;
using Tap = InterpolationTap<float>;
using Outputs = InterpolationOutputs<float>;

// The images of x, or in NCHW order its planes, as rows of elements.
struct Lines {
  Line rows, columns;
  int images, channels, height, width;  // of x; channels: 1 in NCHW order

  Lines(const InterpolationCut& cut, const Tensor& x, const Tensor& y)
      : rows(x.shape()[2], cut, y.shape()[2]), columns(x.shape()[3], cut, y.shape()[3]) {
    const bool last = x.format().order == Order::channels_last;
    images = static_cast<int>(last ? x.shape()[0] : x.shape().count(0, 2));
    channels = static_cast<int>(last ? x.shape()[1] : 1);
    height = static_cast<int>(x.shape()[2]), width = static_cast<int>(x.shape()[3]);
  }
  // Offset in elements of the uncropped part of a row of x; `row` counts without the cropped rows.
  __device__ int64_t source(int image, int row) const {
    return ((static_cast<int64_t>(image) * height + row + rows.start) * width + columns.start) *
           channels;
  }
};

struct PackGrid {
  uint32_t count;
  Divisor packs, columns, rows;
};

template <typename T, int kPack>
__global__ void __launch_bounds__(kThreads)
    interpolate_packs(Lines lines, PackGrid grid, const T* x, Pack<T, kPack>* y) {
  using P = Pack<T, kPack>;
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= grid.count) return;
  uint32_t pack = i, column, row;
  column = grid.packs.split(pack);
  row = grid.columns.split(column);
  const uint32_t image = grid.rows.split(row);
  const Tap v(lines.rows, static_cast<int>(row)), u(lines.columns, static_cast<int>(column));
  const int packs = static_cast<int>(grid.packs.value);
  const P* const upper = reinterpret_cast<const P*>(x + lines.source(image, v.first)) + pack;
  const P* const lower = reinterpret_cast<const P*>(x + lines.source(image, v.second)) + pack;
  const P a = upper[u.first * packs], b = upper[u.second * packs];
  const P c = lower[u.first * packs], d = lower[u.second * packs];
  P out;
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    const float above =
        (1 - u.part) * static_cast<float>(a.v[k]) + u.part * static_cast<float>(b.v[k]);
    const float below =
        (1 - u.part) * static_cast<float>(c.v[k]) + u.part * static_cast<float>(d.v[k]);
    out.v[k] = (1 - v.part) * above + v.part * below;
  }
  y[i] = out;
}

// One output column: the offset of its left source in the row, and the weight of the right one.
struct ColumnTap {
  int first;
  float part;
};

// The source row repeats its last position, so that every output has a right neighbor.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    interpolate_rows(Lines lines, Divisor channels, const T* x, T* y) {
  extern __shared__ float row[];
  const int each = lines.channels, width = lines.columns.in * each;
  auto* const taps = reinterpret_cast<ColumnTap*>(row + (width + each + 1) / 2 * 2);
  const int image = blockIdx.x / lines.rows.out;
  const Tap v(lines.rows, static_cast<int>(blockIdx.x) - image * lines.rows.out);
  const T* const upper = x + lines.source(image, v.first);
  const T* const lower = x + lines.source(image, v.second);
  for (int i = threadIdx.x; i < width + each; i += kThreads) {
    const int at = i < width ? i : i - each;
    row[i] = (1 - v.part) * static_cast<float>(upper[at]) + v.part * static_cast<float>(lower[at]);
  }
  for (int i = threadIdx.x; i < lines.columns.out; i += kThreads) {
    const Tap u(lines.columns, i);
    taps[i] = {u.first * each, u.part};
  }
  __syncthreads();
  const int outputs = lines.columns.out * each;
  y += static_cast<int64_t>(blockIdx.x) * outputs;
#pragma unroll 4
  for (int i = threadIdx.x; i < outputs; i += kThreads) {
    uint32_t channel = i;
    const ColumnTap tap = taps[channels.split(channel)];
    const float* const left = row + tap.first + channel;
    y[i] = (1 - tap.part) * left[0] + tap.part * left[each];
  }
}

// The tile of dx of a block: `down` source rows, `across` of their columns and `deep` of their
// channels.
struct ImagePieces {
  int down, across, deep, room;  // room: floats per row in shared memory
  uint32_t row_pieces, column_pieces, channel_pieces;
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    gradient_pieces(Lines lines, ImagePieces pieces, const T* dy, T* dx) {
  extern __shared__ float line[];
  uint32_t block = blockIdx.x;
  const int channel0 = static_cast<int>(block % pieces.channel_pieces) * pieces.deep;
  block /= pieces.channel_pieces;
  const int column0 = static_cast<int>(block % pieces.column_pieces) * pieces.across;
  block /= pieces.column_pieces;
  const int row0 = static_cast<int>(block % pieces.row_pieces) * pieces.down;
  const int image = static_cast<int>(block / pieces.row_pieces);
  const int deep = min(pieces.deep, lines.channels - channel0);
  const int across = min(pieces.across, lines.width - column0);
  const int down = min(pieces.down, lines.height - row0);
  // The rows and columns of the block without cropped ones.
  const int top = max(row0 - lines.rows.start, 0);
  const int bottom = min(row0 + down - lines.rows.start, lines.rows.in);
  const int left = max(column0 - lines.columns.start, 0);
  const int right = min(column0 + across - lines.columns.start, lines.columns.in);
  const bool counts = top < bottom && left < right;
  int first = 0;
  if (counts) {
    // The output columns that they contribute to.
    first = Outputs(lines.columns, left).begin;
    const int outputs = (Outputs(lines.columns, right - 1).end - first) * deep;
    const int begin = Outputs(lines.rows, top).begin, end = Outputs(lines.rows, bottom - 1).end;
    const int step = lines.columns.out * lines.channels;
    dy += ((static_cast<int64_t>(image) * lines.rows.out + begin) * lines.columns.out + first) *
              lines.channels +
          channel0;
    constexpr int kEach = 4, kRows = 4;
    for (int base = threadIdx.x; base < outputs; base += kThreads * kEach) {
      const T* from[kEach];
#pragma unroll
      for (int k = 0; k < kEach; ++k) {
        const int at = min(base + k * kThreads, outputs - 1);
        from[k] = dy + (deep == lines.channels ? at : at / deep * lines.channels + at % deep);
      }
      // The sums for source row `at_row`, and for the row after it.
      float here[kEach] = {}, behind[kEach] = {};
      int at_row = top - 1;
      const auto go_on = [&] {
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
          const int at = base + k * kThreads;
          if (at_row >= top && at < outputs) line[(at_row - top) * pieces.room + at] = here[k];
          here[k] = behind[k];
          behind[k] = 0;
        }
        ++at_row;
      };
      for (int p0 = begin; p0 < end; p0 += kRows) {
        float values[kRows][kEach];
#pragma unroll
        for (int n = 0; n < kRows; ++n) {
#pragma unroll
          for (int k = 0; k < kEach; ++k)
            values[n][k] = p0 + n < end ? static_cast<float>(from[k][n * step]) : 0.f;
        }
#pragma unroll
        for (int k = 0; k < kEach; ++k) from[k] += kRows * step;
#pragma unroll
        for (int n = 0; n < kRows; ++n) {
          const Tap tap(lines.rows, p0 + n);
          if (p0 + n >= end || tap.first < top - 1 || tap.first >= bottom) continue;
          while (at_row < tap.first) go_on();
          const float part = tap.second == tap.first ? 0.f : tap.part;
#pragma unroll
          for (int k = 0; k < kEach; ++k) {
            here[k] += (1 - part) * values[n][k];
            behind[k] += part * values[n][k];
          }
        }
      }
      while (at_row < bottom) go_on();
    }
  }
  __syncthreads();
  for (int at = threadIdx.x; at < down * across * deep; at += kThreads) {
    const int channel = at % deep, position = at / deep;
    const int column = column0 + position % across, row = row0 + position / across;
    const int i = row - lines.rows.start, j = column - lines.columns.start;
    float sum = 0;
    if (i >= top && i < bottom && j >= left && j < right) {
      const float* const outputs = line + (i - top) * pieces.room + channel;
      const Outputs u(lines.columns, j);
      for (int q = u.begin; q < u.end; ++q)
        sum += Tap(lines.columns, q).weight(j) * outputs[(q - first) * deep];
    }
    dx[((static_cast<int64_t>(image) * lines.height + row) * lines.width + column) *
           lines.channels +
       channel0 + channel] = sum;
  }
}

// The maximum number of outputs that some adjacent columns contribute to. From the begin of the first
// column's InterpolationOutputs to the end of the last one's there are (columns + 1) / step outputs,
// the 1 + 2 that they take more, 1 for what they cut off, and 1 for the rounding of their divisions.
int64_t reach(const Line& line, int columns) {
  if (line.step <= 0) return line.out;
  return std::min<int64_t>(line.out, static_cast<int64_t>((columns + 1) / line.step) + 5);
}

// Calls body<T>(), which returns a refusal or null.
template <typename Body>
Refusal on_floats(const Tensor& x, const Tensor& y, const Body& body) {
  if (x.dtype() == DType::f64) return "not in float64";
  if (std::max(x.count(), y.count()) >= Divisor::kMax) return "too many elements";
  if (x.count() == 0 || y.count() == 0) return nullptr;
  Refusal refusal = nullptr;
  on_real(x, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) refusal = body.template operator()<T>();
  });
  return refusal;
}

Refusal interpolate_gpu(Context& context, const InterpolationCut& cut, const Tensor& x,
                        const Tensor& y) {
  return on_floats(x, y, [&]<typename T>() -> Refusal {
    const Lines lines(cut, x, y);
    const int64_t rows = static_cast<int64_t>(lines.images) * lines.rows.out;
    const int64_t width = (lines.columns.in + 1) * int64_t{lines.channels};
    const size_t shared = (width + 1) * sizeof(float) + lines.columns.out * sizeof(ColumnTap);
    if (lines.channels > 1 && lines.channels % 2 == 1 && shared <= kSharedBytes) {
      launch(context.gpu(), interpolate_rows<T>, {static_cast<unsigned>(rows), kThreads, shared},
             lines, Divisor(lines.channels), x.data<T>(), y.data<T>());
      return nullptr;
    }
    with_column_pack<T>(
        lines.channels,
        [&]<int kPack>() {
          const int packs = lines.channels / kPack;
          const int64_t count = rows * lines.columns.out * packs;
          const PackGrid grid{static_cast<uint32_t>(count), Divisor(packs),
                              Divisor(lines.columns.out), Divisor(lines.rows.out)};
          launch(context.gpu(), interpolate_packs<T, kPack>,
                 {static_cast<unsigned>(ceil_div(count, kThreads)), kThreads}, lines, grid,
                 x.data<T>(), y.data<Pack<T, kPack>>());
        },
        x.data<T>(), y.data<T>());
    return nullptr;
  });
}

Refusal interpolate_gradient_gpu(Context& context, const InterpolationCut& cut, const Tensor& dy,
                                 const Tensor& dx) {
  return on_floats(dx, dy, [&]<typename T>() -> Refusal {
    const Lines lines(cut, dx, dy);
    ImagePieces pieces{};
    pieces.deep = std::min(lines.channels, 64);
    pieces.across = lines.width;
    while (pieces.across > 1 && reach(lines.columns, pieces.across) * pieces.deep > kLineFloats)
      pieces.across = (pieces.across + 1) / 2;
    pieces.room = static_cast<int>(reach(lines.columns, pieces.across) * pieces.deep);
    pieces.down = std::min<int>(lines.height, std::max(1, kSharedFloats / pieces.room));
    const size_t shared = pieces.down * pieces.room * sizeof(float);
    if (shared > kSharedBytes) return "too many outputs for an input";
    pieces.row_pieces = ceil_div(lines.height, pieces.down);
    pieces.column_pieces = ceil_div(lines.width, pieces.across);
    pieces.channel_pieces = ceil_div(lines.channels, pieces.deep);
    const int64_t blocks = static_cast<int64_t>(lines.images) * pieces.row_pieces *
                           pieces.column_pieces * pieces.channel_pieces;
    launch(context.gpu(), gradient_pieces<T>, {static_cast<unsigned>(blocks), kThreads, shared},
           lines, pieces, dy.data<T>(), dx.data<T>());
    return nullptr;
  });
}

REGISTER_KERNEL(interpolate_kernels, "cuda", RunsOn::gpu, 20, interpolate_gpu);
REGISTER_KERNEL(interpolate_gradient_kernels, "cuda", RunsOn::gpu, 20, interpolate_gradient_gpu);

}  // namespace
}  // namespace crema
