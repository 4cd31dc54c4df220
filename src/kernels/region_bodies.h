// What each thread does in pooling regions and in its gradient. For .cu files only, as
// device/parallel.h.
#pragma once

#include <cfloat>

#include "kernels/region_tables.h"
#include "tensor/half.h"

namespace crema {

// An element by its coordinates.
struct Spot {
  int32_t outer, channel, row, column;
};

// How x or y lies in memory.
struct Lines {
  int32_t channels, rows, columns;
  bool channels_last;
  explicit Lines(const Tensor& x)
      : channels(static_cast<int32_t>(x.shape()[1])),
        rows(static_cast<int32_t>(x.shape()[2])),
        columns(static_cast<int32_t>(x.shape()[3])),
        channels_last(x.format().order == Order::channels_last) {}

  CREMA_HD Spot spot(int64_t i) const {
    return i >> 31 ? spot_of(static_cast<uint64_t>(i)) : spot_of(static_cast<uint32_t>(i));
  }
  template <typename Index>
  CREMA_HD Spot spot_of(Index i) const {
    const auto take = [&](int32_t extent) {
      const Index rest = i / static_cast<Index>(extent);
      const auto at = static_cast<int32_t>(i - rest * static_cast<Index>(extent));
      i = rest;
      return at;
    };
    Spot at;
    if (channels_last) at.channel = take(channels);
    at.column = take(columns);
    at.row = take(rows);
    if (!channels_last) at.channel = take(channels);
    at.outer = static_cast<int32_t>(i);
    return at;
  }
  // Of row 0, column 0; a place further is step() away.
  CREMA_HD int64_t start(int32_t outer, int32_t channel) const {
    const int64_t places = static_cast<int64_t>(rows) * columns;
    return channels_last ? outer * places * channels + channel
                         : (static_cast<int64_t>(outer) * channels + channel) * places;
  }
  CREMA_HD int64_t step() const { return channels_last ? channels : 1; }
};

template <typename T>
struct MaxBody {
  RegionTables t;
  Lines in, out;
  bool ring;
  const T* x;
  T* y;
  int32_t* index;
  CREMA_HD void operator()(int64_t i) const {
    const Spot at = out.spot(i);
    const int32_t r = at.outer, image = t.image[r];
    const Span rows = t.row(r, at.row), columns = t.column(r, at.column);
    const bool empty = image < 0 || rows.empty() || columns.empty();
    Compute<T> best = empty || ring ? 0 : -FLT_MAX;
    int32_t where = -1;
    if (!empty) {
      const T* map = x + in.start(image, at.channel);
      const int64_t step = in.step();
      const Span out_rows = ring ? t.holes[2 * r] : Span{0, 0},
                 out_columns = ring ? t.holes[2 * r + 1] : Span{0, 0};
      for (int32_t h = rows.first; h < rows.last; ++h) {
        const bool row_out = h > out_rows.first && h < out_rows.last;
        const T* at_place = map + (h * t.width + columns.first) * step;
        for (int32_t w = columns.first; w < columns.last; ++w, at_place += step) {
          if (row_out && w > out_columns.first && w < out_columns.last) continue;
          const Compute<T> value = *at_place;
          if (value > best) {
            best = value;
            where = h * t.width + w;
          }
        }
      }
    }
    y[i] = best;
    index[i] = where;
  }
};

template <typename T>
struct MaxGradient {
  RegionTables t;
  Lines in, out;
  const int32_t* index;
  const T* dy;
  T* dx;
  CREMA_HD void operator()(int64_t i) const {
    const Spot at = in.spot(i);
    const int32_t place = at.row * t.width + at.column;
    const int64_t step = out.step();
    Compute<T> sum = 0;
    t.for_readers(at.outer, at.row, at.column, 0, 0, [&](int32_t r) {
      const Span rows = t.rows_at(r, at.row), columns = t.columns_at(r, at.column);
      const int64_t grid = out.start(r, at.channel);
      for (int32_t k = rows.first; k < rows.last; ++k) {
        for (int32_t j = columns.first; j < columns.last; ++j) {
          const int64_t cell = grid + (k * t.columns + j) * step;
          if (index[cell] == place) sum += static_cast<Compute<T>>(dy[cell]);
        }
      }
    });
    dx[i] = sum;
  }
};

template <typename T>
struct WeightedBody {
  RegionTables t;
  Lines in, out;
  bool own_channels;  // each cell has channels of its own
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t i) const {
    const Spot at = out.spot(i);
    const int32_t r = at.outer, image = t.image[r];
    Compute<T> sum = 0;
    if (image >= 0) {
      const Span rows = t.row(r, at.row), columns = t.column(r, at.column);
      const float *row_weights = t.row_weights(r, at.row),
                  *column_weights = t.column_weights(r, at.column);
      const int32_t channel =
          own_channels ? (at.channel * t.rows + at.row) * t.columns + at.column : at.channel;
      const T* map = x + in.start(image, channel);
      const int64_t step = in.step();
      for (int32_t h = rows.first; h < rows.last; ++h) {
        Compute<T> line = 0;
        const T* at_place = map + (h * t.width + columns.first) * step;
        for (int32_t w = columns.first; w < columns.last; ++w, at_place += step)
          line += column_weights[w] * static_cast<Compute<T>>(*at_place);
        sum += row_weights[h] * line;
      }
    }
    y[i] = sum;
  }
};

template <typename T>
struct WeightedGradient {
  RegionTables t;
  Lines in, out;
  bool own_channels;
  const T* dy;
  T* dx;
  CREMA_HD void operator()(int64_t i) const {
    const Spot at = in.spot(i);
    // The one cell that reads this channel, where each has its own.
    const int32_t own_row = own_channels ? at.channel / t.columns % t.rows : 0,
                  own_column = own_channels ? at.channel % t.columns : 0;
    const int32_t channel = own_channels ? at.channel / (t.rows * t.columns) : at.channel;
    const int64_t step = out.step();
    Compute<T> sum = 0;
    t.for_readers(at.outer, at.row, at.column, own_row, own_column, [&](int32_t r) {
      const Span own_rows{own_row, own_row + 1}, own_columns{own_column, own_column + 1};
      const Span rows = own_channels ? own_rows : t.rows_at(r, at.row),
                 columns = own_channels ? own_columns : t.columns_at(r, at.column);
      const int64_t grid = out.start(r, channel);
      for (int32_t k = rows.first; k < rows.last; ++k) {
        Compute<T> line = 0;
        for (int32_t j = columns.first; j < columns.last; ++j) {
          line += t.column_weights(r, j)[at.column] *
                  static_cast<Compute<T>>(dy[grid + (k * t.columns + j) * step]);
        }
        sum += t.row_weights(r, k)[at.row] * line;
      }
    });
    dx[i] = sum;
  }
};

// The CPU's gradients: a plane of x, one image's channel, at a time, to which its regions add in
// their order; the same sums as above, without asking each place about each region.
template <typename T>
struct MaxPlane {
  MaxGradient<T> g;
  CREMA_HD void operator()(int64_t plane) const {
    const auto image = static_cast<int32_t>(plane / g.in.channels),
               channel = static_cast<int32_t>(plane % g.in.channels);
    T* map = g.dx + g.in.start(image, channel);
    const int64_t step = g.in.step(), places = int64_t{g.t.height} * g.t.width;
    for (int64_t i = 0; i < places; ++i) map[i * step] = 0;
    for (int32_t r = 0; r < g.t.regions; ++r) {
      if (g.t.image[r] != image) continue;
      const int64_t grid = g.out.start(r, channel), cells = int64_t{g.t.rows} * g.t.columns;
      for (int64_t i = 0; i < cells; ++i) {
        const int64_t cell = grid + i * g.out.step();
        if (g.index[cell] < 0) continue;
        T& at = map[g.index[cell] * step];
        at = at + g.dy[cell];
      }
    }
  }
};

template <typename T>
struct WeightedPlane {
  WeightedGradient<T> g;
  CREMA_HD void operator()(int64_t plane) const {
    const auto image = static_cast<int32_t>(plane / g.in.channels),
               channel = static_cast<int32_t>(plane % g.in.channels);
    const int32_t cells = g.t.rows * g.t.columns;
    T* map = g.dx + g.in.start(image, channel);
    const int64_t step = g.in.step(), places = int64_t{g.t.height} * g.t.width;
    for (int64_t i = 0; i < places; ++i) map[i * step] = 0;
    for (int32_t r = 0; r < g.t.regions; ++r) {
      if (g.t.image[r] != image) continue;
      const int32_t first = g.own_channels ? channel % cells : 0,
                    last = g.own_channels ? first + 1 : cells;
      const int64_t grid = g.out.start(r, g.own_channels ? channel / cells : channel);
      for (int32_t cell = first; cell < last; ++cell)
        add(r, cell, g.dy[grid + cell * g.out.step()], map, step);
    }
  }
  CREMA_HD void add(int32_t r, int32_t cell, T dy, T* map, int64_t step) const {
    const int32_t i = cell / g.t.columns, j = cell % g.t.columns;
    const Span rows = g.t.row(r, i), columns = g.t.column(r, j);
    const float *row_weights = g.t.row_weights(r, i), *column_weights = g.t.column_weights(r, j);
    for (int32_t h = rows.first; h < rows.last; ++h) {
      for (int32_t w = columns.first; w < columns.last; ++w) {
        T& at = map[(int64_t{h} * g.t.width + w) * step];
        at = at + row_weights[h] * (column_weights[w] * dy);
      }
    }
  }
};

}  // namespace crema
