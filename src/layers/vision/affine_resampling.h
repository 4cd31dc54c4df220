// Per-thread code that resamples images by affine maps, and its gradients. For .cu files only, like
// device/parallel.h. Maps are those of SpatialTransformer: row coordinates come first.
#pragma once

#include <cmath>

#include "base/host_device.h"
#include "kernels/core/divisor.h"

namespace crema::affine {

constexpr int kEntries = 6;
constexpr int kTogether = 8;  // channels per thread: they share the source position

struct Transformer {
  int64_t channels, height, width, out_height, out_width;
  int64_t given;           // entries in the second bottom
  int position[kEntries];  // of an entry in the second bottom; -1: fixed
  double fixed[kEntries];  // value of a fixed entry
  Divisor by_groups, by_width, by_out_width;

  int64_t groups() const { return (channels + kTogether - 1) / kTogether; }
  CREMA_HD int64_t positions() const { return height * width; }
  CREMA_HD int64_t out_positions() const { return out_height * out_width; }
};

// Some channels of an image; the last may be repeated.
struct ChannelGroup {
  int64_t image, first;  // first: among the planes of all images
  int count;
  CREMA_HD ChannelGroup(const Transformer& t, int64_t index) {
    auto group = static_cast<uint32_t>(index);
    image = t.by_groups.split(group);
    const int64_t channel = int64_t{kTogether} * group, rest = t.channels - channel;
    first = image * t.channels + channel;
    count = rest < kTogether ? static_cast<int>(rest) : kTogether;
  }
  CREMA_HD int64_t plane(int k) const { return first + (k < count ? k : count - 1); }
};

struct Position {
  int row, column;
  CREMA_HD Position(const Divisor& by_width, int64_t index) {
    auto rest = static_cast<uint32_t>(index);
    row = static_cast<int>(by_width.split(rest));
    column = static_cast<int>(rest);
  }
};

template <typename T>
struct SourcePosition {
  T row, column;
};

// The map of an image.
template <typename T>
struct AffineMap {
  T u[3], v[3];  // coefficients of the position's y, x and 1
  T height, width, out_height, out_width;

  CREMA_HD static T from_middle(int at, T count) { return static_cast<T>(2 * at) / count - 1; }
  CREMA_HD SourcePosition<T> source(int h, int w) const {
    const T y = from_middle(h, out_height), x = from_middle(w, out_width);
    return {(u[0] * y + u[1] * x + u[2] + 1) / 2 * height,
            (v[0] * y + v[1] * x + v[2] + 1) / 2 * width};
  }
};

template <typename T>
struct Maps {
  Transformer t;
  const T* given;

  template <int kEntry>
  CREMA_HD T entry(int64_t image) const {
    return t.position[kEntry] < 0 ? static_cast<T>(t.fixed[kEntry])
                                  : given[image * t.given + t.position[kEntry]];
  }
  CREMA_HD AffineMap<T> of(int64_t image) const {
    return {{entry<0>(image), entry<1>(image), entry<2>(image)},
            {entry<3>(image), entry<4>(image), entry<5>(image)},
            static_cast<T>(t.height),
            static_cast<T>(t.width),
            static_cast<T>(t.out_height),
            static_cast<T>(t.out_width)};
  }
};

// Offsets in a plane of the four values around a position, and the position's distance from the
// first.
template <typename T>
struct Corners {
  int first, right, below, last;  // -1: outside
  T down, across;
  CREMA_HD Corners(const Transformer& t, const SourcePosition<T>& p) {
    // Far outside every corner is 0; only values that fit an index are converted.
    const T rows = static_cast<T>(t.height + 1), columns = static_cast<T>(t.width + 1);
    const bool near = p.row > -2 && p.column > -2 && p.row < rows && p.column < columns;
    const T top = near ? floor(p.row) : T(-2), left = near ? floor(p.column) : T(-2);
    const auto row = static_cast<int>(top), column = static_cast<int>(left);
    const auto height = static_cast<int>(t.height), width = static_cast<int>(t.width);
    const auto at = [&](int r, int c) {
      return r >= 0 && r < height && c >= 0 && c < width ? r * width + c : -1;
    };
    first = at(row, column);
    right = at(row, column + 1);
    below = at(row + 1, column);
    last = at(row + 1, column + 1);
    down = near ? p.row - top : T(0);
    across = near ? p.column - left : T(0);
  }
};

template <typename T>
struct Around {
  T first, right, below, last, down, across;
  CREMA_HD Around(const Corners<T>& c, const T* plane)
      : first(c.first < 0 ? T(0) : plane[c.first]),
        right(c.right < 0 ? T(0) : plane[c.right]),
        below(c.below < 0 ? T(0) : plane[c.below]),
        last(c.last < 0 ? T(0) : plane[c.last]),
        down(c.down),
        across(c.across) {}
  CREMA_HD T value() const {
    return (1 - down) * ((1 - across) * first + across * right) +
           down * ((1 - across) * below + across * last);
  }
  CREMA_HD T slope_down() const { return (1 - across) * (below - first) + across * (last - right); }
  CREMA_HD T slope_across() const { return (1 - down) * (right - first) + down * (last - below); }
};

template <typename T>
struct Resample {
  Maps<T> maps;
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t channels, int64_t position) const {
    const Transformer& t = maps.t;
    const ChannelGroup group(t, channels);
    const Position at(t.by_out_width, position);
    const Corners<T> corners(t, maps.of(group.image).source(at.row, at.column));
    T values[kTogether];
    for (int k = 0; k < kTogether; ++k)
      values[k] = Around<T>(corners, x + group.plane(k) * t.positions()).value();
    for (int k = 0; k < kTogether; ++k) {
      if (k < group.count) y[group.plane(k) * t.out_positions() + position] = values[k];
    }
  }
};

// The gradient of a position's source coordinates, summed over the channels of y. Per image, the
// row coordinates of all positions, then the column coordinates.
template <typename T>
struct SourceGradient {
  Maps<T> maps;
  const T *x, *dy;
  T* moves;
  CREMA_HD void operator()(int64_t image, int64_t position) const {
    const Transformer& t = maps.t;
    const Position at(t.by_out_width, position);
    const Corners<T> corners(t, maps.of(image).source(at.row, at.column));
    const T *from = x + image * t.channels * t.positions(),
            *slope = dy + image * t.channels * t.out_positions() + position;
    T down = 0, across = 0;
    for (int64_t c = 0; c < t.channels; ++c, from += t.positions(), slope += t.out_positions()) {
      const Around<T> around(corners, from);
      down += *slope * around.slope_down();
      across += *slope * around.slope_across();
    }
    T* const to = moves + 2 * image * t.out_positions() + position;
    to[0] = down * static_cast<T>(t.height) / 2;
    to[t.out_positions()] = across * static_cast<T>(t.width) / 2;
  }
};

// Gradient of all entries of all maps: the sum of a coordinate's gradient times y, x or 1.
template <typename T>
struct MapGradient {
  Transformer t;
  const T* moves;
  template <typename>
  CREMA_HD T operator()(int64_t sum, int64_t, int64_t position) const {
    const int64_t image = sum / t.given, which = sum % t.given;
    int entry = 0;
    for (int k = 0; k < kEntries; ++k) entry = t.position[k] == which ? k : entry;
    const Position at(t.by_out_width, position);
    const T factor =
        entry % 3 == 0   ? AffineMap<T>::from_middle(at.row, static_cast<T>(t.out_height))
        : entry % 3 == 1 ? AffineMap<T>::from_middle(at.column, static_cast<T>(t.out_width))
                         : T(1);
    return moves[(2 * image + entry / 3) * t.out_positions() + position] * factor;
  }
};

// One source coordinate as a line: start + down * h + across * w. Whatever is less than 1 away from
// a position is within `reach` of it despite rounding.
template <typename T>
struct SourceLine {
  T start, down, across, reach, by_across;
  CREMA_HD SourceLine(T from, T by_row, T by_column, T rows, T columns)
      : start(from), down(by_row), across(by_column), by_across(1 / by_column) {
    const T rounding = sizeof(T) == 4 ? T(1e-6) : T(2e-15);
    reach = T(1.01) + rounding * (fabs(start) + fabs(down) * rows + fabs(across) * columns);
  }
};

// A range of integers; NaN does not narrow it.
struct Range {
  int first, last;
  template <typename T>
  CREMA_HD void narrow(T from, T to) {
    from = ceil(from);
    to = floor(to);
    if (from > static_cast<T>(last) || to < static_cast<T>(first)) {
      last = first - 1;
    } else {
      if (from > static_cast<T>(first)) first = static_cast<int>(from);
      if (to < static_cast<T>(last)) last = static_cast<int>(to);
    }
  }
  // To the indices at which the line, minus `rest`, is within its reach.
  template <typename T>
  CREMA_HD void narrow(T rest, const SourceLine<T>& line) {
    const T low = rest - line.reach, high = rest + line.reach;
    if (line.across != 0) {
      const T one = low * line.by_across, other = high * line.by_across;
      const T slack = T(0.01);  // covers the rounding of the reciprocal
      narrow((one < other ? one : other) - slack, (one < other ? other : one) + slack);
    } else if (low > 0 || high < 0) {
      last = first - 1;
    }
  }
};

// The positions of y that read a position of x: those whose source is less than one pixel away, in
// a fixed order, so that sums are reproducible. They are in a parallelogram of y: the inverse map
// gives its rows (all rows if the map is nearly singular), and each row follows a line through x,
// which is close to the position only between two columns.
template <typename T>
struct ImageGradient {
  Maps<T> maps;
  const T* dy;
  T* dx;

  CREMA_HD void operator()(int64_t channels, int64_t position) const {
    const Transformer& t = maps.t;
    const ChannelGroup group(t, channels);
    const Position at(t.by_width, position);
    const AffineMap<T> map = maps.of(group.image);
    const SourcePosition<T> start = map.source(0, 0);
    const T rows = map.out_height, columns = map.out_width;
    const SourceLine<T> r(start.row, map.u[0] * map.height / rows, map.u[1] * map.height / columns,
                          rows, columns),
        c(start.column, map.v[0] * map.width / rows, map.v[1] * map.width / columns, rows, columns);
    const T own_row = static_cast<T>(at.row), own_column = static_cast<T>(at.column);
    const T to_row = own_row - r.start, to_column = own_column - c.start;
    Range hs{0, static_cast<int>(t.out_height) - 1};
    const T both = r.down * c.across, other = r.across * c.down, determinant = both - other;
    if (fabs(determinant) > T(0.01) * (fabs(both) + fabs(other))) {
      const T middle = (c.across * to_row - r.across * to_column) / determinant;
      const T half = (fabs(c.across) * r.reach + fabs(r.across) * c.reach) / fabs(determinant);
      hs.narrow(middle - half - T(0.5), middle + half + T(0.5));
    }
    const T* const from = dy + group.first * t.out_positions();
    const auto out_width = static_cast<int>(t.out_width);
    int before[kTogether];  // offset in y of each channel
    T sums[kTogether];
    for (int k = 0; k < kTogether; ++k) {
      before[k] = (k < group.count ? k : group.count - 1) * static_cast<int>(t.out_positions());
      sums[k] = 0;
    }
    for (int h = hs.first; h <= hs.last; ++h) {
      // The distance of the row's first source from the position.
      const T row_away = r.down * static_cast<T>(h) - to_row,
              column_away = c.down * static_cast<T>(h) - to_column;
      Range ws{0, out_width - 1};
      ws.narrow(-row_away, r);
      ws.narrow(-column_away, c);
      for (int w = ws.first; w <= ws.last; ++w) {
        const T down = 1 - std::fabs(row_away + r.across * static_cast<T>(w)),
                across = 1 - std::fabs(column_away + c.across * static_cast<T>(w));
        if (!(down > 0 && across > 0)) continue;
        const T share = down * across;
        const int reader = h * out_width + w;
        for (int k = 0; k < kTogether; ++k) sums[k] += share * from[before[k] + reader];
      }
    }
    for (int k = 0; k < kTogether; ++k) {
      if (k < group.count) dx[group.plane(k) * t.positions() + position] = sums[k];
    }
  }
};

}  // namespace crema::affine
