#include "kernels/conv/im2col.h"

#include <algorithm>

namespace crema {
namespace {

// A run of output positions along the last axis, for one combination of the filter's taps along all
// other axes.
struct Line {
  int64_t point;     // index of the first position in the piece
  int64_t q, count;  // its coordinate along the last axis; the length of the run
  int64_t tap;       // index of the tap, not counting the last axis
  int64_t input;  // index of the input position where this line of the image starts; -1: outside of
                  // the image
};

template <typename Visit>
void for_lines(const ConvGeometry& g, int64_t first, int64_t points, const Visit& visit) {
  const int last = g.axes - 1;
  int64_t outer_taps = 1;
  for (int axis = 0; axis < last; ++axis) outer_taps *= g.kernel[axis];
  for (int64_t done = 0; done < points;) {
    int64_t line = (first + done) / g.out[last];
    const int64_t q = (first + done) % g.out[last],
                  count = std::min(g.out[last] - q, points - done);
    int64_t out[kMaxSpatialAxes];
    for (int axis = last - 1; axis >= 0; --axis) {
      out[axis] = line % g.out[axis];
      line /= g.out[axis];
    }
    for (int64_t tap = 0; tap < outer_taps; ++tap) {
      int64_t input = 0, rest = tap, stride = g.in[last];
      for (int axis = last - 1; axis >= 0 && input >= 0; --axis) {
        const int64_t at =
            out[axis] * g.stride[axis] - g.pad[axis] + rest % g.kernel[axis] * g.dilation[axis];
        rest /= g.kernel[axis];
        input = at < 0 || at >= g.in[axis] ? -1 : input + at * stride;
        stride *= g.in[axis];
      }
      visit(Line{done, q, count, tap, input});
    }
    done += count;
  }
}

struct Range {
  int64_t begin, end;
};

// The taps along the last axis that are inside the image; `at` is the coordinate of the first tap.
Range taps_inside(const ConvGeometry& g, int64_t at) {
  const int last = g.axes - 1;
  const int64_t d = g.dilation[last];
  const int64_t begin = std::min(g.kernel[last], at < 0 ? (-at + d - 1) / d : 0);
  const int64_t end =
      at >= g.in[last] ? 0 : std::min(g.kernel[last], (g.in[last] - 1 - at) / d + 1);
  return {begin, std::max(begin, end)};
}

// The positions of a line for which all taps of the last axis are inside the image.
Range points_all_inside(const ConvGeometry& g, const Line& line) {
  if (line.input < 0) return {line.count, line.count};
  const int last = g.axes - 1;
  const int64_t s = g.stride[last], at = line.q * s - g.pad[last];
  const int64_t room = g.in[last] - 1 - (g.kernel[last] - 1) * g.dilation[last] - at;
  const int64_t begin = std::min(line.count, at < 0 ? (-at + s - 1) / s : 0);
  return {begin, std::max(begin, room < 0 ? 0 : std::min(line.count, room / s + 1))};
}

// The positions of a line for which this tap of the last axis is inside the image.
Range points_inside(const ConvGeometry& g, const Line& line, int64_t tap) {
  const int last = g.axes - 1;
  const int64_t at = line.q * g.stride[last] - g.pad[last] + tap * g.dilation[last],
                s = g.stride[last];
  const int64_t begin = std::min(line.count, at < 0 ? (-at + s - 1) / s : 0);
  const int64_t end = at >= g.in[last] ? 0 : std::min(line.count, (g.in[last] - 1 - at) / s + 1);
  return {begin, std::max(begin, end)};
}

// For the few elements of a filter's row of taps, a call of memcpy costs more than the copy.
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
  // The last vector; it may overlap the one before.
  *reinterpret_cast<Some*>(to + count - width) =
      *reinterpret_cast<const Some*>(from + count - width);
}

// Channels-last, one line: a patch row holds the filter's taps along the last axis, each with all
// channels.
struct RowsOfLine {
  RowsOfLine(const ConvGeometry& g, int64_t group, const Line& line)
      : channels(g.in_channels),
        wide(g.kernel[g.axes - 1] * channels),
        stride(g.stride[g.axes - 1]),
        tap_step(g.dilation[g.axes - 1] * g.all_in_channels()),
        pixel(g.all_in_channels()),
        patch(line.point * channels * g.taps + line.tap * wide),
        patch_step(channels * g.taps),
        image((line.input + line.q * stride - g.pad[g.axes - 1]) * pixel + group * channels) {}
  // Offsets of the line's position i.
  int64_t patch_of(int64_t i) const { return patch + i * patch_step; }
  int64_t image_of(int64_t i) const { return image + i * stride * pixel; }

  int64_t channels, wide, stride, tap_step, pixel, patch, patch_step, image;
};

template <typename T>
void gather_rows(const ConvGeometry& g, const T* image, int64_t group, int64_t first,
                 int64_t points, T* patches) {
  for_lines(g, first, points, [&](const Line& line) {
    const RowsOfLine rows(g, group, line);
    const Range inside = points_all_inside(g, line);
    const bool together =
        rows.tap_step == rows.channels;  // the taps are contiguous in the image too
    for (int64_t i = inside.begin; i < inside.end; ++i) {
      const T* from = image + rows.image_of(i);
      T* to = patches + rows.patch_of(i);
      if (together) {
        copy_few(from, rows.wide, to);
      } else {
        for (int64_t c = 0; c < rows.wide; c += rows.channels, from += rows.tap_step)
          copy_few(from, rows.channels, to + c);
      }
    }
    const auto at_edge = [&](int64_t i) {
      T* to = patches + rows.patch_of(i);
      std::fill(to, to + rows.wide, T(0));
      if (line.input < 0) return;
      const Range taps = taps_inside(g, (line.q + i) * rows.stride - g.pad[g.axes - 1]);
      for (int64_t tap = taps.begin; tap < taps.end; ++tap) {
        copy_few(image + rows.image_of(i) + tap * rows.tap_step, rows.channels,
                 to + tap * rows.channels);
      }
    };
    for (int64_t i = 0; i < inside.begin; ++i) at_edge(i);
    for (int64_t i = inside.end; i < line.count; ++i) at_edge(i);
  });
}

template <typename T>
void scatter_rows(const ConvGeometry& g, const T* patches, int64_t group, int64_t first,
                  int64_t points, T* image) {
  for_lines(g, first, points, [&](const Line& line) {
    if (line.input < 0) return;
    const RowsOfLine rows(g, group, line);
    const Range inside = points_all_inside(g, line);
    const bool together = rows.tap_step == rows.channels;
    for (int64_t i = 0; i < line.count; ++i) {
      const T* from = patches + rows.patch_of(i);
      T* to = image + rows.image_of(i);
      const bool whole = i >= inside.begin && i < inside.end;
      if (whole && together) {
#pragma omp simd
        for (int64_t k = 0; k < rows.wide; ++k) to[k] += from[k];
        continue;
      }
      const Range taps = whole ? Range{0, g.kernel[g.axes - 1]}
                               : taps_inside(g, (line.q + i) * rows.stride - g.pad[g.axes - 1]);
      for (int64_t tap = taps.begin; tap < taps.end; ++tap) {
        T* goal = to + tap * rows.tap_step;
        const T* source = from + tap * rows.channels;
#pragma omp simd
        for (int64_t c = 0; c < rows.channels; ++c) goal[c] += source[c];
      }
    }
  });
}

// Row-major: calls visit(patches' row, image's line) for every channel and tap of each line.
template <typename Visit>
void for_columns(const ConvGeometry& g, int64_t group, int64_t first, int64_t points,
                 const Visit& visit) {
  const int last = g.axes - 1;
  for_lines(g, first, points, [&](const Line& line) {
    for (int64_t tap = 0; tap < g.kernel[last]; ++tap) {
      const Range inside = line.input < 0 ? Range{0, 0} : points_inside(g, line, tap);
      const int64_t at =
          line.input + line.q * g.stride[last] - g.pad[last] + tap * g.dilation[last];
      for (int64_t c = 0; c < g.in_channels; ++c) {
        const int64_t row = c * g.taps + line.tap * g.kernel[last] + tap;
        visit(row * points + line.point, (group * g.in_channels + c) * g.in_points + at, inside,
              line.count);
      }
    }
  });
}

template <typename T>
void gather_columns(const ConvGeometry& g, const T* image, int64_t group, int64_t first,
                    int64_t points, T* patches) {
  const int64_t stride = g.stride[g.axes - 1];
  for_columns(g, group, first, points,
              [&](int64_t patch, int64_t pixel, const Range& inside, int64_t count) {
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
void scatter_columns(const ConvGeometry& g, const T* patches, int64_t group, int64_t first,
                     int64_t points, T* image) {
  const int64_t stride = g.stride[g.axes - 1];
  for_columns(g, group, first, points,
              [&](int64_t patch, int64_t pixel, const Range& inside, int64_t) {
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

Patches::Patches(const ConvGeometry& g, Order order)
    : g_(g), last_(order == Order::channels_last), needed_(g.taps > 1) {
  for (int axis = 0; axis < g.axes; ++axis)
    needed_ = needed_ || g.stride[axis] != 1 || g.pad[axis] != 0;
}

template <typename T>
Patches::View<T> Patches::goal(T* image, int64_t group, int64_t first, int64_t points,
                               T* patches) const {
  if (needed_) return {patches, last_ ? row() : points};
  if (last_)
    return {image + first * g_.all_in_channels() + group * g_.in_channels, g_.all_in_channels()};
  return {image + group * g_.in_channels * g_.in_points + first, g_.in_points};
}

template <typename T>
Patches::View<T> Patches::gather(T* image, int64_t group, int64_t first, int64_t points,
                                 T* patches) const {
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
void Patches::scatter(const T* patches, int64_t group, int64_t first, int64_t points,
                      T* image) const {
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
