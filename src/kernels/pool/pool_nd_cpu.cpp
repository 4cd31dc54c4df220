// On a CPU whole lines are pooled at once: of the last spatial axis, in channels-last order of the
// channels. The other axes are stepped through.
#include <algorithm>
#include <cfloat>

#include "kernels/core/axes.h"
#include "kernels/pool/pool_nd.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int64_t kMostWidth = 256;  // of a line that is worked on at once

struct Lines {
  const PoolAxes& window;
  bool average, last;  // last: channels-last
  int axes, stepped;   // spatial axes, and those of them that are not along the line
  int64_t channels, images;
  const Shape &x, &y;
  AxisStrides xs, ys;

  Lines(const PoolAxes& pooling, bool mean, const Tensor& in, const Tensor& out)
      : window(pooling),
        average(mean),
        last(in.format().order == Order::channels_last),
        axes(in.shape().axes() - 2),
        stepped(last ? axes : axes - 1),
        channels(in.shape()[1]),
        images(in.shape()[0]),
        x(in.shape()),
        y(out.shape()),
        xs(strides_of(x, in.format().order)),
        ys(strides_of(y, out.format().order)) {}

  // A task has a plane of its own: a channel of an image, or some channels where they lie side by
  // side.
  int64_t width() const { return last ? std::min(channels, kMostWidth) : 1; }
  int64_t tasks() const { return images * ((channels + width() - 1) / width()); }

  // Cells of output position o along an axis that the mean counts: Caffe cuts a window at the far
  // side of the padding; at the image itself when padding does not count.
  int64_t counted(int axis, int64_t o) const {
    const int64_t at = o * window.stride[axis] - window.pad[axis], gap = window.dilation[axis];
    const int64_t border = x[axis + 2] + (window.count_padding ? window.pad[axis] : 0);
    const int64_t first = window.count_padding || at >= 0 ? 0 : (gap - 1 - at) / gap;
    const int64_t end = border > at ? (border - at + gap - 1) / gap : 0;
    return std::min(end, window.kernel[axis]) - first;
  }
};

// Elements o of a piece of a line, first <= o < end, meet the cell of a window at `from + o * step`
// in x, which is place `place + o * step`, or `place` for all of them in channels-last order.
struct Meeting {
  int64_t first, end, from, step, place;
};

// For each piece of the task's lines of y: piece.start(to, begin, count, divisor), where it begins
// in y and in its line, its length, and what a mean's divisor is but for the axis along the line;
// then cell(meeting) for each cell of its windows that lies in x, then finish(the same).
template <typename Piece>
void over_lines(const Lines& l, int64_t task, Piece& piece) {
  const int64_t groups = (l.channels + l.width() - 1) / l.width();
  const int64_t image = task / groups, channel = task % groups * l.width();
  const int line = l.axes - 1;  // the axis along the line in plain order
  const int64_t length = l.last ? std::min(l.width(), l.channels - channel) : l.y[line + 2];
  int64_t o[kMostSpatialAxes] = {}, extents[kMostSpatialAxes], kernel[kMostSpatialAxes];
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
    for (int64_t begin = 0; begin < length; begin += kMostWidth) {
      const int64_t count = std::min(kMostWidth, length - begin);
      piece.start(to + begin, begin, count, divisor);
      int64_t c[kMostSpatialAxes] = {};
      do {
        int64_t from = image * l.xs.outer + channel * l.xs.channel, place = 0;
        bool inside = true;
        for (int axis = 0; axis < l.stepped; ++axis) {
          const int64_t at = o[axis] * l.window.stride[axis] - l.window.pad[axis] +
                             c[axis] * l.window.dilation[axis];
          inside = inside && at >= 0 && at < l.x[axis + 2];
          from += at * l.xs.axis[axis];
          place = place * l.x[axis + 2] + at;
        }
        if (!inside) continue;
        if (l.last) {
          piece.cell({0, count, from + begin, 1, place});
          continue;
        }
        const int64_t step = l.window.stride[line], in = l.x[line + 2];
        const int64_t shift = begin * step - l.window.pad[line] + c[line] * l.window.dilation[line];
        const int64_t first = shift >= 0 ? 0 : (step - 1 - shift) / step;
        const int64_t end = shift >= in ? 0 : std::min(count, (in - 1 - shift) / step + 1);
        if (first < end) piece.cell({first, end, from + shift, step, place * in + shift});
      } while (next_place(c, kernel, l.axes));
      piece.finish(to + begin, begin, count, divisor);
    }
  } while (next_place(o, extents, l.stepped));
}

template <typename T>
struct ForwardPiece {
  const Lines& l;
  const T* x;
  T* y;
  int32_t* index;
  T* mask;
  T value[kMostWidth];  // the sum, or the largest
  int32_t kept[kMostWidth];

  void start(int64_t, int64_t, int64_t count, int64_t) {
    std::fill(value, value + count, l.average ? T(0) : T(-FLT_MAX));
    std::fill(kept, kept + count, -1);
  }
  void cell(const Meeting& m) {
    const T* const from = x + m.from;
    if (l.average) {
      for (int64_t i = m.first; i < m.end; ++i) value[i] += from[i * m.step];
    } else if (m.step == 1) {
      take<1>(m, from);
    } else {
      take<0>(m, from);
    }
  }
  template <int kStep>  // 0: any
  void take(const Meeting& m, const T* from) {
    const int64_t step = kStep > 0 ? kStep : m.step;
    const auto place = static_cast<int32_t>(m.place), on = static_cast<int32_t>(l.last ? 0 : step);
#pragma omp simd
    for (int64_t i = m.first; i < m.end; ++i) {
      const T one = from[i * step];
      const bool larger = one > value[i];
      value[i] = larger ? one : value[i];
      kept[i] = larger ? place + static_cast<int32_t>(i) * on : kept[i];
    }
  }
  void finish(int64_t to, int64_t begin, int64_t count, int64_t divisor) {
    for (int64_t i = 0; l.average && i < count; ++i) {
      const int64_t cells = divisor * (l.last ? 1 : l.counted(l.axes - 1, begin + i));
      y[to + i] = cells > 0 ? value[i] / static_cast<T>(cells) : T(0);
    }
    if (l.average) return;
    std::copy(value, value + count, y + to);
    if (index) std::copy(kept, kept + count, index + to);
    if (mask) std::copy(kept, kept + count, mask + to);
  }
};

// Of a mean: each output gives its share to the cells.
template <typename T>
struct MeanGradientPiece {
  const Lines& l;
  const T* dy;
  T* dx;
  T share[kMostWidth];

  void start(int64_t to, int64_t begin, int64_t count, int64_t divisor) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t cells = divisor * (l.last ? 1 : l.counted(l.axes - 1, begin + i));
      share[i] = cells > 0 ? dy[to + i] / static_cast<T>(cells) : T(0);
    }
  }
  void cell(const Meeting& m) {
    for (int64_t i = m.first; i < m.end; ++i) dx[m.from + i * m.step] += share[i];
  }
  void finish(int64_t, int64_t, int64_t, int64_t) {}
};

// What a task writes of dx: `runs` runs of `run` elements, `step` apart, from `begin` on.
struct Plane {
  int64_t begin, runs, run, step;
  Plane(const Lines& l, const Shape& shape, int64_t task) {
    const int64_t groups = (l.channels + l.width() - 1) / l.width(), places = shape.count(2);
    const int64_t image = task / groups, channel = task % groups * l.width();
    begin = image * shape.count(1) + channel * (l.last ? 1 : places);
    runs = l.last ? places : 1;
    run = l.last ? std::min(l.width(), l.channels - channel) : places;
    step = l.last ? l.channels : places;
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
      const int64_t at = y.begin + i * y.step + k, place = index[at];
      if (place >= 0) dx[x.begin + (l.last ? place * l.channels + k : place)] += dy[at];
    }
  }
}

}  // namespace

void pool_axes_forward_cpu(const PoolAxes& window, bool average, const Tensor& x, const Tensor& y,
                           const Tensor& index, const Tensor& mask) {
  const Lines lines(window, average, x, y);
  on(x, [&]<typename T>() {
#pragma omp parallel for schedule(static)
    for (int64_t task = 0; task < lines.tasks(); ++task) {
      ForwardPiece<T> piece{lines,          x.data<T>(), y.data<T>(), index.data<int32_t>(),
                            mask.data<T>(), {},          {}};
      over_lines(lines, task, piece);
    }
  });
}

void pool_axes_backward_cpu(const PoolAxes& window, bool average, const Tensor& index,
                            const Tensor& dy, const Tensor& dx) {
  const Lines lines(window, average, dx, dy);
  on(dy, [&]<typename T>() {
#pragma omp parallel for schedule(static)
    for (int64_t task = 0; task < lines.tasks(); ++task)
      backward(lines, task, index.data<int32_t>(), dy.data<T>(), dx.data<T>());
  });
}

}  // namespace crema
