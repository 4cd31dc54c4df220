#include "kernels/conv_patches.h"

#include <algorithm>

namespace crema {
namespace {

// Some output points in a row along the last axis, seen through the filter's taps of all other axes.
struct Line {
  int64_t point;     // place of the first of them in the piece
  int64_t q, count;  // its coordinate along the last axis; how many
  int64_t tap;       // number of the tap, the taps of the last axis not counted
  int64_t input;     // number of the input point where this line of the image begins; -1: outside of the image
};

template <typename Visit>
void for_lines(const ConvGeometry& g, int64_t first, int64_t points, const Visit& visit) {
  const int last = g.axes - 1;
  int64_t outer_taps = 1;
  for (int axis = 0; axis < last; ++axis) outer_taps *= g.kernel[axis];
  for (int64_t done = 0; done < points;) {
    int64_t line = (first + done) / g.out[last];
    const int64_t q = (first + done) % g.out[last], count = std::min(g.out[last] - q, points - done);
    int64_t out[kMostSpatialAxes];
    for (int axis = last - 1; axis >= 0; --axis) {
      out[axis] = line % g.out[axis];
      line /= g.out[axis];
    }
    for (int64_t tap = 0; tap < outer_taps; ++tap) {
      int64_t input = 0, rest = tap, stride = g.in[last];
      for (int axis = last - 1; axis >= 0 && input >= 0; --axis) {
        const int64_t at = out[axis] * g.stride[axis] - g.pad[axis] + rest % g.kernel[axis] * g.dilation[axis];
        rest /= g.kernel[axis];
        input = at < 0 || at >= g.in[axis] ? -1 : input + at * stride;
        stride *= g.in[axis];
      }
      visit(Line{done, q, count, tap, input});
    }
    done += count;
  }
}

// The taps [begin, end) of the last axis that lie inside the image, for the output point q.
struct Inside {
  int64_t begin, end;
};
Inside taps_inside(const ConvGeometry& g, int64_t at) {
  const int last = g.axes - 1;
  const int64_t d = g.dilation[last];
  if (at >= 0 && at + (g.kernel[last] - 1) * d < g.in[last]) return {0, g.kernel[last]};
  const int64_t begin = at < 0 ? (-at + d - 1) / d : 0;
  const int64_t end = at >= g.in[last] ? 0 : std::min(g.kernel[last], (g.in[last] - 1 - at) / d + 1);
  return {std::min(begin, g.kernel[last]), std::max(end, std::min(begin, g.kernel[last]))};
}

// Among `count` output points from q on, the [begin, end) that see the image through this tap of the last axis.
Inside points_inside(const ConvGeometry& g, const Line& line, int64_t tap) {
  const int last = g.axes - 1;
  const int64_t at = line.q * g.stride[last] - g.pad[last] + tap * g.dilation[last], s = g.stride[last];
  const int64_t begin = std::min(line.count, at < 0 ? (-at + s - 1) / s : 0);
  const int64_t end = at >= g.in[last] ? 0 : std::min(line.count, (g.in[last] - 1 - at) / s + 1);
  return {begin, std::max(begin, end)};
}

// For the few numbers that a filter's row of taps holds, a call of memcpy costs more than the copy.
template <typename T>
void copy_few(const T* from, int64_t count, T* to) {
  typedef T Some __attribute__((vector_size(32), aligned(alignof(T)), may_alias));
  constexpr int64_t width = 32 / sizeof(T);
  if (count < width) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  if (count > 8 * width) {
    std::copy(from, from + count, to);
    return;
  }
  for (int64_t i = 0; i + width < count; i += width) {
    *reinterpret_cast<Some*>(to + i) = *reinterpret_cast<const Some*>(from + i);
  }
  // The last ones, some of them for the second time.
  *reinterpret_cast<Some*>(to + count - width) = *reinterpret_cast<const Some*>(from + count - width);
}

template <typename T>
void gather_rows(const ConvGeometry& g, const T* image, int64_t group, int64_t first, int64_t points, T* patches) {
  const int last = g.axes - 1;
  const int64_t channels = g.in_channels, all = g.all_in_channels(), row = channels * g.taps;
  const int64_t wide = g.kernel[last] * channels;
  // Without groups and dilation the taps of the last axis lie next to each other in the image too.
  const bool together = g.groups == 1 && g.dilation[last] == 1;
  for_lines(g, first, points, [&](const Line& line) {
    for (int64_t i = 0; i < line.count; ++i) {
      T* to = patches + (line.point + i) * row + line.tap * wide;
      const int64_t at = (line.q + i) * g.stride[last] - g.pad[last];
      const Inside inside = line.input < 0 ? Inside{0, 0} : taps_inside(g, at);
      std::fill(to, to + inside.begin * channels, T(0));
      std::fill(to + inside.end * channels, to + wide, T(0));
      const T* from = image + (line.input + at) * all + group * channels;
      if (together) {
        copy_few(from + inside.begin * channels, (inside.end - inside.begin) * channels, to + inside.begin * channels);
        continue;
      }
      for (int64_t tap = inside.begin; tap < inside.end; ++tap) {
        const T* source = from + tap * g.dilation[last] * all;
        copy_few(source, channels, to + tap * channels);
      }
    }
  });
}

template <typename T>
void scatter_rows(const ConvGeometry& g, const T* patches, int64_t group, int64_t first, int64_t points, T* image) {
  const int last = g.axes - 1;
  const int64_t channels = g.in_channels, all = g.all_in_channels(), row = channels * g.taps;
  for_lines(g, first, points, [&](const Line& line) {
    if (line.input < 0) return;
    for (int64_t i = 0; i < line.count; ++i) {
      const T* from = patches + (line.point + i) * row + line.tap * g.kernel[last] * channels;
      const int64_t at = (line.q + i) * g.stride[last] - g.pad[last];
      const Inside inside = taps_inside(g, at);
      T* to = image + (line.input + at) * all + group * channels;
      for (int64_t tap = inside.begin; tap < inside.end; ++tap) {
        T* goal = to + tap * g.dilation[last] * all;
        const T* source = from + tap * channels;
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) goal[c] += source[c];
      }
    }
  });
}

// Plain order: calls visit(patches' row, image's line) for every channel and tap of each line.
template <typename Visit>
void for_columns(const ConvGeometry& g, int64_t group, int64_t first, int64_t points, const Visit& visit) {
  const int last = g.axes - 1;
  for_lines(g, first, points, [&](const Line& line) {
    for (int64_t tap = 0; tap < g.kernel[last]; ++tap) {
      const Inside inside = line.input < 0 ? Inside{0, 0} : points_inside(g, line, tap);
      const int64_t at = line.input + line.q * g.stride[last] - g.pad[last] + tap * g.dilation[last];
      for (int64_t c = 0; c < g.in_channels; ++c) {
        const int64_t row = c * g.taps + line.tap * g.kernel[last] + tap;
        visit(row * points + line.point, (group * g.in_channels + c) * g.in_points + at, inside, line.count);
      }
    }
  });
}

template <typename T>
void gather_columns(const ConvGeometry& g, const T* image, int64_t group, int64_t first, int64_t points, T* patches) {
  const int64_t stride = g.stride[g.axes - 1];
  for_columns(g, group, first, points, [&](int64_t patch, int64_t pixel, const Inside& inside, int64_t count) {
    T* to = patches + patch;
    const T* from = image + pixel;
    std::fill(to, to + inside.begin, T(0));
    std::fill(to + inside.end, to + count, T(0));
    if (stride == 1) {
      std::copy(from + inside.begin, from + inside.end, to + inside.begin);
    } else {
      for (int64_t i = inside.begin; i < inside.end; ++i) to[i] = from[i * stride];
    }
  });
}

template <typename T>
void scatter_columns(const ConvGeometry& g, const T* patches, int64_t group, int64_t first, int64_t points, T* image) {
  const int64_t stride = g.stride[g.axes - 1];
  for_columns(g, group, first, points, [&](int64_t patch, int64_t pixel, const Inside& inside, int64_t) {
    const T* from = patches + patch;
    T* to = image + pixel;
    if (stride == 1) {
#pragma omp simd
      for (int64_t i = inside.begin; i < inside.end; ++i) to[i] += from[i];
    } else {
      for (int64_t i = inside.begin; i < inside.end; ++i) to[i * stride] += from[i];
    }
  });
}

}  // namespace

Patches::Patches(const ConvGeometry& g, Order order) : g_(g), last_(order == Order::channels_last), needed_(g.taps > 1) {
  for (int axis = 0; axis < g.axes; ++axis) needed_ = needed_ || g.stride[axis] != 1 || g.pad[axis] != 0;
}

template <typename T>
Patches::View<T> Patches::goal(T* image, int64_t group, int64_t first, int64_t points, T* patches) const {
  if (needed_) return {patches, last_ ? row() : points};
  if (last_) return {image + first * g_.all_in_channels() + group * g_.in_channels, g_.all_in_channels()};
  return {image + group * g_.in_channels * g_.in_points + first, g_.in_points};
}

template <typename T>
Patches::View<T> Patches::gather(T* image, int64_t group, int64_t first, int64_t points, T* patches) const {
  if (needed_) {
    if (last_) {
      gather_rows(g_, image, group, first, points, patches);
    } else {
      gather_columns(g_, image, group, first, points, patches);
    }
  }
  return goal(image, group, first, points, patches);
}

template <typename T>
void Patches::scatter(const T* patches, int64_t group, int64_t first, int64_t points, T* image) const {
  if (last_) {
    scatter_rows(g_, patches, group, first, points, image);
  } else {
    scatter_columns(g_, patches, group, first, points, image);
  }
}

template Patches::View<float> Patches::goal(float*, int64_t, int64_t, int64_t, float*) const;
template Patches::View<double> Patches::goal(double*, int64_t, int64_t, int64_t, double*) const;
template Patches::View<float> Patches::gather(float*, int64_t, int64_t, int64_t, float*) const;
template Patches::View<double> Patches::gather(double*, int64_t, int64_t, int64_t, double*) const;
template void Patches::scatter(const float*, int64_t, int64_t, int64_t, float*) const;
template void Patches::scatter(const double*, int64_t, int64_t, int64_t, double*) const;

}  // namespace crema
