// The per-thread functors of RoI pooling and its gradient. For .cu files only, like
// device/parallel.h.
#pragma once

#include <cfloat>

#include "kernels/roi/roi_tables.h"
#include "tensor/half.h"

namespace crema::roi {

// The coordinates of an element.
struct Coordinates {
  int32_t outer, channel, row, column;
};

// The memory layout of x or y.
struct MapLayout {
  int32_t channels, rows, columns;
  bool channels_last;
  explicit MapLayout(const Tensor& x)
      : channels(static_cast<int32_t>(x.shape()[1])),
        rows(static_cast<int32_t>(x.shape()[2])),
        columns(static_cast<int32_t>(x.shape()[3])),
        channels_last(x.format().order == Order::channels_last) {}

  CREMA_HD Coordinates coordinates(int64_t i) const {
    return i >> 31 ? split(static_cast<uint64_t>(i)) : split(static_cast<uint32_t>(i));
  }
  template <typename Index>
  CREMA_HD Coordinates split(Index i) const {
    const auto take = [&](int32_t extent) {
      const Index rest = i / static_cast<Index>(extent);
      const auto at = static_cast<int32_t>(i - rest * static_cast<Index>(extent));
      i = rest;
      return at;
    };
    Coordinates at;
    if (channels_last) at.channel = take(channels);
    at.column = take(columns);
    at.row = take(rows);
    if (!channels_last) at.channel = take(channels);
    at.outer = static_cast<int32_t>(i);
    return at;
  }
  // Offset of row 0, column 0; the next position is step() further.
  CREMA_HD int64_t start(int32_t outer, int32_t channel) const {
    const int64_t positions = static_cast<int64_t>(rows) * columns;
    return channels_last ? outer * positions * channels + channel
                         : (static_cast<int64_t>(outer) * channels + channel) * positions;
  }
  CREMA_HD int64_t step() const { return channels_last ? channels : 1; }
};

template <typename T>
struct MaxBody {
  RoiTables t;
  MapLayout in, out;
  bool ring;
  const T* x;
  T* y;
  int32_t* index;
  // True for a position inside the hole of a ring.
  CREMA_HD bool left_out(int32_t r, int32_t h, int32_t w) const {
    if (!ring) return false;
    const Span rows = t.holes[2 * r], columns = t.holes[2 * r + 1];
    return h > rows.begin && h < rows.end && w > columns.begin && w < columns.end;
  }
  CREMA_HD void operator()(int64_t i) const {
    const Coordinates at = out.coordinates(i);
    const int32_t r = at.outer, image = t.image[r];
    const Span rows = t.row(r, at.row), columns = t.column(r, at.column);
    const bool empty = image < 0 || rows.empty() || columns.empty();
    Compute<T> best = empty || ring ? 0 : -FLT_MAX;
    int32_t where = -1;
    if (!empty) {
      const T* map = x + in.start(image, at.channel);
      const int64_t step = in.step();
      for (int32_t h = rows.begin; h < rows.end; ++h) {
        const T* at_position = map + (h * t.width + columns.begin) * step;
        for (int32_t w = columns.begin; w < columns.end; ++w, at_position += step) {
          if (left_out(r, h, w)) continue;
          const Compute<T> value = *at_position;
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
  RoiTables t;
  MapLayout in, out;
  const int32_t* index;
  const T* dy;
  T* dx;
  CREMA_HD void operator()(int64_t i) const {
    const Coordinates at = in.coordinates(i);
    const int32_t position = at.row * t.width + at.column;
    const int64_t step = out.step();
    Compute<T> sum = 0;
    t.for_readers(at.outer, at.row, at.column, 0, 0, [&](int32_t r) {
      const Span rows = t.rows_at(r, at.row), columns = t.columns_at(r, at.column);
      const int64_t grid = out.start(r, at.channel);
      for (int32_t k = rows.begin; k < rows.end; ++k) {
        for (int32_t j = columns.begin; j < columns.end; ++j) {
          const int64_t cell = grid + (k * t.columns + j) * step;
          if (index[cell] == position) sum += static_cast<Compute<T>>(dy[cell]);
        }
      }
    });
    dx[i] = sum;
  }
};

template <typename T>
struct WeightedBody {
  RoiTables t;
  MapLayout in, out;
  bool own_channels;  // each cell reads its own channels
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t i) const {
    const Coordinates at = out.coordinates(i);
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
      for (int32_t h = rows.begin; h < rows.end; ++h) {
        Compute<T> line = 0;
        const T* at_position = map + (h * t.width + columns.begin) * step;
        for (int32_t w = columns.begin; w < columns.end; ++w, at_position += step)
          line += column_weights[w] * static_cast<Compute<T>>(*at_position);
        sum += row_weights[h] * line;
      }
    }
    y[i] = sum;
  }
};

template <typename T>
struct WeightedGradient {
  RoiTables t;
  MapLayout in, out;
  bool own_channels;
  const T* dy;
  T* dx;
  CREMA_HD void operator()(int64_t i) const {
    if (own_channels) return of_one_cell(i);
    const Coordinates at = in.coordinates(i);
    const int64_t step = out.step();
    Compute<T> sum = 0;
    t.for_readers(at.outer, at.row, at.column, 0, 0, [&](int32_t r) {
      const Span rows = t.rows_at(r, at.row), columns = t.columns_at(r, at.column);
      const int64_t grid = out.start(r, at.channel);
      for (int32_t k = rows.begin; k < rows.end; ++k) {
        Compute<T> line = 0;
        for (int32_t j = columns.begin; j < columns.end; ++j) {
          line += t.column_weights(r, j)[at.column] *
                  static_cast<Compute<T>>(dy[grid + (k * t.columns + j) * step]);
        }
        sum += t.row_weights(r, k)[at.row] * line;
      }
    });
    dx[i] = sum;
  }

  // Each channel is read by only one cell of the grid. In channels-last maps, consecutive indices
  // are remapped to the `each` channels of one cell, so that neighboring threads visit the same
  // RoIs.
  CREMA_HD void of_one_cell(int64_t i) const {
    const Coordinates at = in.coordinates(i);
    const int32_t cells = t.rows * t.columns, each = in.channels / cells;
    const int32_t channel =
        in.channels_last ? at.channel % each * cells + at.channel / each : at.channel;
    const int32_t cell = channel % cells, row = cell / t.columns, column = cell % t.columns;
    const int64_t roi = int64_t{cells} * each;
    const float *of_row = t.row_weights(0, row) + at.row,
                *of_column = t.column_weights(0, column) + at.column;
    const T* slope = dy + out.start(0, channel / cells) + cell * out.step();
    const int32_t weights = t.weights_each();
    Compute<T> sum = 0;
    t.for_readers(at.outer, at.row, at.column, row, column, [&](int32_t r) {
      const int64_t to_weights = int64_t{r} * weights;
      const Compute<T> line = of_column[to_weights] * static_cast<Compute<T>>(slope[r * roi]);
      sum += of_row[to_weights] * line;
    });
    dx[in.channels_last ? i - at.channel + channel : i] = sum;
  }
};

// The CPU's forward for channels-last maps: one cell at a time, all channels of a position at once.
template <typename T>
struct MaxCell {
  MaxBody<T> body;
  CREMA_HD void operator()(int64_t cell) const {
    const RoiTables& t = body.t;
    const int64_t cells = int64_t{t.rows} * t.columns;
    const auto r = static_cast<int32_t>(cell / cells), at = static_cast<int32_t>(cell % cells);
    const Span rows = t.row(r, at / t.columns), columns = t.column(r, at % t.columns);
    const int32_t image = t.image[r], channels = body.in.channels;
    const bool empty = image < 0 || rows.empty() || columns.empty();
    T* y = body.y + cell * channels;
    int32_t* index = body.index + cell * channels;
    for (int32_t c = 0; c < channels; ++c) {
      y[c] = empty || body.ring ? 0.0f : -FLT_MAX;
      index[c] = -1;
    }
    if (empty) return;
    for (int32_t h = rows.begin; h < rows.end; ++h) {
      for (int32_t w = columns.begin; w < columns.end; ++w) {
        if (body.left_out(r, h, w)) continue;
        const int32_t position = h * t.width + w;
        const T* x = body.x + body.in.start(image, 0) + int64_t{position} * channels;
#pragma omp simd
        for (int32_t c = 0; c < channels; ++c) {
          const bool larger = x[c] > y[c];
          y[c] = larger ? x[c] : y[c];
          index[c] = larger ? position : index[c];
        }
      }
    }
  }
};

template <typename T>
struct WeightedCell {
  WeightedBody<T> body;
  CREMA_HD void operator()(int64_t cell) const {
    const RoiTables& t = body.t;
    const int64_t cells = int64_t{t.rows} * t.columns;
    const auto r = static_cast<int32_t>(cell / cells), at = static_cast<int32_t>(cell % cells);
    const int32_t i = at / t.columns, j = at % t.columns;
    const int32_t image = t.image[r], channels = body.in.channels;
    T* y = body.y + cell * channels;
    for (int32_t c = 0; c < channels; ++c) y[c] = 0.0f;
    if (image < 0) return;
    const Span rows = t.row(r, i), columns = t.column(r, j);
    for (int32_t h = rows.begin; h < rows.end; ++h) {
      for (int32_t w = columns.begin; w < columns.end; ++w) {
        const Compute<T> weight =
            static_cast<Compute<T>>(t.row_weights(r, i)[h]) * t.column_weights(r, j)[w];
        const T* x = body.x + body.in.start(image, 0) + (int64_t{h} * t.width + w) * channels;
#pragma omp simd
        for (int32_t c = 0; c < channels; ++c) y[c] = y[c] + weight * static_cast<Compute<T>>(x[c]);
      }
    }
  }
};

// The CPU's gradients: a block of channels of one image at a time, to which the image's RoIs add in
// order. The sums are the same as above, without testing every position against every RoI.
struct ChannelBlock {
  int32_t image, first, count;
  CREMA_HD ChannelBlock(const MapLayout& x, int32_t each, int64_t block) {
    const int32_t of_image = (x.channels + each - 1) / each;
    image = static_cast<int32_t>(block / of_image);
    first = static_cast<int32_t>(block % of_image) * each;
    count = first + each < x.channels ? each : x.channels - first;
  }
};

template <typename T>
struct MaxBlock {
  MaxGradient<T> g;
  int32_t each;
  CREMA_HD void operator()(int64_t block) const {
    const ChannelBlock b(g.in, each, block);
    T* map = g.dx + g.in.start(b.image, b.first);
    const int64_t step = g.in.step(), positions = int64_t{g.t.height} * g.t.width;
    for (int64_t i = 0; i < positions; ++i) {
      for (int32_t c = 0; c < b.count; ++c) map[i * step + c] = 0;
    }
    for (int32_t r = 0; r < g.t.rois; ++r) {
      if (g.t.image[r] != b.image) continue;
      const int64_t grid = g.out.start(r, b.first), cells = int64_t{g.t.rows} * g.t.columns;
      for (int64_t i = 0; i < cells; ++i) {
        const int64_t cell = grid + i * g.out.step();
        for (int32_t c = 0; c < b.count; ++c) {
          if (g.index[cell + c] < 0) continue;
          T& at = map[g.index[cell + c] * step + c];
          at = at + g.dy[cell + c];
        }
      }
    }
  }
};

template <typename T>
struct WeightedBlock {
  WeightedGradient<T> g;
  int32_t each;
  CREMA_HD void operator()(int64_t block) const {
    const ChannelBlock b(g.in, each, block);
    const int32_t cells = g.t.rows * g.t.columns;
    T* map = g.dx + g.in.start(b.image, b.first);
    const int64_t step = g.in.step(), positions = int64_t{g.t.height} * g.t.width;
    for (int64_t i = 0; i < positions; ++i) {
      for (int32_t c = 0; c < b.count; ++c) map[i * step + c] = 0;
    }
    for (int32_t r = 0; r < g.t.rois; ++r) {
      if (g.t.image[r] != b.image) continue;
      const int32_t begin = g.own_channels ? b.first % cells : 0,
                    end = g.own_channels ? begin + 1 : cells;
      const int64_t grid = g.out.start(r, g.own_channels ? b.first / cells : b.first);
      for (int32_t cell = begin; cell < end; ++cell)
        add(r, cell, g.dy + grid + cell * g.out.step(), map, b.count);
    }
  }
  CREMA_HD void add(int32_t r, int32_t cell, const T* dy, T* map, int32_t count) const {
    const int32_t i = cell / g.t.columns, j = cell % g.t.columns;
    const Span rows = g.t.row(r, i), columns = g.t.column(r, j);
    const float *row_weights = g.t.row_weights(r, i), *column_weights = g.t.column_weights(r, j);
    for (int32_t h = rows.begin; h < rows.end; ++h) {
      for (int32_t w = columns.begin; w < columns.end; ++w) {
        T* at = map + (int64_t{h} * g.t.width + w) * g.in.step();
#pragma omp simd
        for (int32_t c = 0; c < count; ++c)
          at[c] = at[c] + row_weights[h] * (column_weights[w] * dy[c]);
      }
    }
  }
};

}  // namespace crema::roi
