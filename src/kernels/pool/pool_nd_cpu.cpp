// On a CPU the inner loop pools a whole line: along the last spatial axis or, in channels-last
// order, along the channels. An odometer steps through the other axes.
#include <algorithm>
#include <cfloat>

#include "base/ceil_div.h"
#include "kernels/core/axes.h"
#include "kernels/core/threads.h"
#include "kernels/pool/counted_cells.h"
#include "kernels/pool/pool_nd.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int64_t kMaxWidth = 256;  // elements of a line that are processed at once

struct Lines {
  const PoolNd& window;
  bool average, channels_last;
  int axes, stepped;  // spatial axes, and how many of them are not along the line
  int64_t channels, images;
  const Shape &x, &y;
  AxisStrides xs, ys;

  Lines(const PoolNd& pooling, bool mean, const Tensor& in, const Tensor& out)
      : window(pooling),
        average(mean),
        channels_last(in.format().order == Order::channels_last),
        axes(in.shape().axes() - 2),
        stepped(channels_last ? axes : axes - 1),
        channels(in.shape()[1]),
        images(in.shape()[0]),
        x(in.shape()),
        y(out.shape()),
        xs(strides_of(x, in.format().order)),
        ys(strides_of(y, out.format().order)) {}

  // Each task has its own plane: one channel of an image, or a group of contiguous channels.
  int64_t width() const { return channels_last ? std::min(channels, kMaxWidth) : 1; }
  int64_t tasks() const { return images * ceil_div(channels, width()); }

  int64_t counted(int axis, int64_t o) const {
    return counted_cells(o * window.stride[axis] - window.pad[axis], window.kernel[axis],
                         x[axis + 2], window.pad[axis], window.count_padding,
                         window.dilation[axis]);
  }
};

// One cell of the windows of a piece of a line: element o of the piece, begin <= o < end, reads x
// at offset `from + o * step`, which is position `position + o * step` of the plane, or `position`
// for all of them in channels-last order.
struct Meeting {
  int64_t begin, end, from, step, position;
};

// For each piece of the task's lines of y: calls piece.start(to, begin, count, divisor) with the
// piece's offset in y, its offset in the line, its length, and the mean's divisor without the
// factor of the axis along the line; then cell(meeting) for each cell of its windows inside x; then
// finish() with the arguments of start().
template <typename Piece>
void over_lines(const Lines& l, int64_t task, Piece& piece) {
  const int64_t groups = ceil_div(l.channels, l.width());
  const int64_t image = task / groups, channel = task % groups * l.width();
  const int line = l.axes - 1;  // the axis along the line in NCHW order
  const int64_t length =
      l.channels_last ? std::min(l.width(), l.channels - channel) : l.y[line + 2];
  int64_t o[kMaxSpatialAxes] = {}, extents[kMaxSpatialAxes], kernel[kMaxSpatialAxes];
  for (int axis = 0; axis < l.axes; ++axis) {
    extents[axis] = l.y[axis + 2];
    kernel[axis] = l.window.kernel[axis];
  }
  do {
    int64_t to = image * l.ys.outer + channel * l.ys.channel, divisor = 1;
    for (int axis = 0; axis < l.stepped; ++axis) {
      to += o[axis] * l.ys.axis[axis];
      divisor *= l.average ? l.counted(axis, o[axis]) : 1;
    }
    for (int64_t begin = 0; begin < length; begin += kMaxWidth) {
      const int64_t count = std::min(kMaxWidth, length - begin);
      piece.start(to + begin, begin, count, divisor);
      int64_t c[kMaxSpatialAxes] = {};
      do {
        int64_t from = image * l.xs.outer + channel * l.xs.channel, position = 0;
        bool inside = true;
        for (int axis = 0; axis < l.stepped; ++axis) {
          const int64_t at = o[axis] * l.window.stride[axis] - l.window.pad[axis] +
                             c[axis] * l.window.dilation[axis];
          inside = inside && at >= 0 && at < l.x[axis + 2];
          from += at * l.xs.axis[axis];
          position = position * l.x[axis + 2] + at;
        }
        if (!inside) continue;
        if (l.channels_last) {
          piece.cell({0, count, from + begin, 1, position});
          continue;
        }
        const int64_t step = l.window.stride[line], in = l.x[line + 2];
        const int64_t shift = begin * step - l.window.pad[line] + c[line] * l.window.dilation[line];
        const int64_t cell_begin = shift >= 0 ? 0 : (step - 1 - shift) / step;
        const int64_t cell_end = shift >= in ? 0 : std::min(count, (in - 1 - shift) / step + 1);
        if (cell_begin < cell_end)
          piece.cell({cell_begin, cell_end, from + shift, step, position * in + shift});
      } while (next_position(c, kernel, l.axes));
      piece.finish(to + begin, begin, count, divisor);
    }
  } while (next_position(o, extents, l.stepped));
}

template <typename T>
struct ForwardPiece {
  const Lines& l;
  const T* x;
  T* y;
  int32_t* index;
  T* mask;
  T value[kMaxWidth];  // the sum, or the maximum
  int32_t argmax[kMaxWidth];

  void start(int64_t, int64_t, int64_t count, int64_t) {
    std::fill(value, value + count, l.average ? T(0) : T(-FLT_MAX));
    std::fill(argmax, argmax + count, -1);
  }
  void cell(const Meeting& m) {
    const T* const from = x + m.from;
    if (l.average) {
      for (int64_t i = m.begin; i < m.end; ++i) value[i] += from[i * m.step];
    } else if (m.step == 1) {
      take<1>(m, from);
    } else {
      take<0>(m, from);
    }
  }
  template <int kStep>  // 0: any step
  void take(const Meeting& m, const T* from) {
    const int64_t step = kStep > 0 ? kStep : m.step;
    const auto position = static_cast<int32_t>(m.position),
               on = static_cast<int32_t>(l.channels_last ? 0 : step);
#pragma omp simd
    for (int64_t i = m.begin; i < m.end; ++i) {
      const T one = from[i * step];
      const bool larger = one > value[i];
      value[i] = larger ? one : value[i];
      argmax[i] = larger ? position + static_cast<int32_t>(i) * on : argmax[i];
    }
  }
  void finish(int64_t to, int64_t begin, int64_t count, int64_t divisor) {
    for (int64_t i = 0; l.average && i < count; ++i) {
      const int64_t cells = divisor * (l.channels_last ? 1 : l.counted(l.axes - 1, begin + i));
      y[to + i] = cells > 0 ? value[i] / static_cast<T>(cells) : T(0);
    }
    if (l.average) return;
    std::copy(value, value + count, y + to);
    if (index) std::copy(argmax, argmax + count, index + to);
    if (mask) std::copy(argmax, argmax + count, mask + to);
  }
};

// Average pooling's gradient: each output adds the same to all its window's cells.
template <typename T>
struct MeanGradientPiece {
  const Lines& l;
  const T* dy;
  T* dx;
  T dy_per_cell[kMaxWidth];

  void start(int64_t to, int64_t begin, int64_t count, int64_t divisor) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t cells = divisor * (l.channels_last ? 1 : l.counted(l.axes - 1, begin + i));
      dy_per_cell[i] = cells > 0 ? dy[to + i] / static_cast<T>(cells) : T(0);
    }
  }
  void cell(const Meeting& m) {
    for (int64_t i = m.begin; i < m.end; ++i) dx[m.from + i * m.step] += dy_per_cell[i];
  }
  void finish(int64_t, int64_t, int64_t, int64_t) {}
};

// The part of dx that a task writes: `runs` runs of `run` elements, `step` apart, starting at
// `begin`.
struct Plane {
  int64_t begin, runs, run, step;
  Plane(const Lines& l, const Shape& shape, int64_t task) {
    const int64_t groups = ceil_div(l.channels, l.width()), positions = shape.count(2);
    const int64_t image = task / groups, channel = task % groups * l.width();
    begin = image * shape.count(1) + channel * (l.channels_last ? 1 : positions);
    runs = l.channels_last ? positions : 1;
    run = l.channels_last ? std::min(l.width(), l.channels - channel) : positions;
    step = l.channels_last ? l.channels : positions;
  }
};

template <typename T>
void backward(const Lines& l, int64_t task, const int32_t* index, const T* dy, T* dx) {
  const Plane x(l, l.x, task), y(l, l.y, task);
  for (int64_t i = 0; i < x.runs; ++i)
    std::fill(dx + x.begin + i * x.step, dx + x.begin + i * x.step + x.run, T(0));
  if (l.average) {
    MeanGradientPiece<T> piece{l, dy, dx, {}};
    return over_lines(l, task, piece);
  }
  for (int64_t i = 0; i < y.runs; ++i) {
    for (int64_t k = 0; k < y.run; ++k) {
      const int64_t at = y.begin + i * y.step + k, position = index[at];
      if (position >= 0)
        dx[x.begin + (l.channels_last ? position * l.channels + k : position)] += dy[at];
    }
  }
}

Refusal pool_nd_forward_cpu(Context&, const PoolNd& window, bool average, const Tensor& x,
                            const Tensor& y, const Tensor& index, const Tensor& mask) {
  const Lines lines(window, average, x, y);
  on(x, [&]<typename T>() {
    const T* const from = x.data<T>();
    T *const to = y.data<T>(), *const masked = mask.data<T>();
    int32_t* const argmax = index.data<int32_t>();
    RegionError error;
#pragma omp parallel for schedule(static)
    for (int64_t task = 0; task < lines.tasks(); ++task) {
      error.run([&] {
        ForwardPiece<T> piece{lines, from, to, argmax, masked, {}, {}};
        over_lines(lines, task, piece);
      });
    }
    error.rethrow();
  });
  return nullptr;
}

Refusal pool_nd_backward_cpu(Context&, const PoolNd& window, bool average, const Tensor& index,
                             const Tensor& dy, const Tensor& dx) {
  const Lines lines(window, average, dx, dy);
  on(dy, [&]<typename T>() {
    const int32_t* const argmax = index.data<int32_t>();
    const T* const from = dy.data<T>();
    T* const to = dx.data<T>();
    RegionError error;
#pragma omp parallel for schedule(static)
    for (int64_t task = 0; task < lines.tasks(); ++task) {
      error.run([&] { backward(lines, task, argmax, from, to); });
    }
    error.rethrow();
  });
  return nullptr;
}

REGISTER_KERNEL(pool_nd_forward_kernels, "vectorized", RunsOn::cpu, 10, pool_nd_forward_cpu);
REGISTER_KERNEL(pool_nd_backward_kernels, "vectorized", RunsOn::cpu, 10, pool_nd_backward_cpu);

}  // namespace
}  // namespace crema
