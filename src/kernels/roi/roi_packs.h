// The per-thread functors of RoI pooling on a GPU for channels-last maps: as roi_functors.h, but
// for a pack of channels, as many as one load fetches. The same sums in the same order.
#pragma once

#include "kernels/core/pack.h"
#include "kernels/roi/roi_functors.h"

namespace crema::roi {

// The coordinates of the i-th pack of channels; `channel` is its first.
template <typename T>
CREMA_HD Coordinates pack_coordinates(MapLayout layout, int64_t i) {
  layout.channels /= kPackCount<T>;
  Coordinates at = layout.coordinates(i);
  at.channel *= kPackCount<T>;
  return at;
}

template <typename T>
CREMA_HD WidePack<T> pack_at(const T* at) {
  return *reinterpret_cast<const WidePack<T>*>(at);
}

template <typename T>
struct MaxPack {
  MaxBody<T> body;
  CREMA_HD void operator()(int64_t i) const {
    constexpr int kCount = kPackCount<T>;
    using Places = Pack<int32_t, kCount>;
    const RoiTables& t = body.t;
    const Coordinates at = pack_coordinates<T>(body.out, i);
    const int32_t r = at.outer, image = t.image[r];
    const Span rows = t.row(r, at.row), columns = t.column(r, at.column);
    const bool empty = image < 0 || rows.empty() || columns.empty();
    Compute<T> best[kCount];
    Places where;
    for (int k = 0; k < kCount; ++k) {
      best[k] = empty || body.ring ? 0 : -FLT_MAX;
      where.v[k] = -1;
    }
    if (!empty) {
      const int64_t step = body.in.step();
      const T* map = body.x + body.in.start(image, at.channel);
      for (int32_t h = rows.begin; h < rows.end; ++h) {
        const T* at_position = map + (h * t.width + columns.begin) * step;
        for (int32_t w = columns.begin; w < columns.end; ++w, at_position += step) {
          if (body.left_out(r, h, w)) continue;
          const WidePack<T> x = pack_at(at_position);
          for (int k = 0; k < kCount; ++k) {
            const Compute<T> value = x.v[k];
            where.v[k] = value > best[k] ? h * t.width + w : where.v[k];
            best[k] = value > best[k] ? value : best[k];
          }
        }
      }
    }
    WidePack<T> y;
    for (int k = 0; k < kCount; ++k) y.v[k] = best[k];
    reinterpret_cast<WidePack<T>*>(body.y)[i] = y;
    reinterpret_cast<Places*>(body.index)[i] = where;
  }
};

template <typename T>
struct WeightedPack {
  WeightedBody<T> body;
  CREMA_HD void operator()(int64_t i) const {
    constexpr int kCount = kPackCount<T>;
    const RoiTables& t = body.t;
    const Coordinates at = pack_coordinates<T>(body.out, i);
    const int32_t r = at.outer, image = t.image[r];
    Compute<T> sum[kCount] = {};
    if (image >= 0) {
      const Span rows = t.row(r, at.row), columns = t.column(r, at.column);
      const float *row_weights = t.row_weights(r, at.row),
                  *column_weights = t.column_weights(r, at.column);
      const int64_t step = body.in.step();
      const T* map = body.x + body.in.start(image, at.channel);
      for (int32_t h = rows.begin; h < rows.end; ++h) {
        Compute<T> line[kCount] = {};
        const T* at_position = map + (h * t.width + columns.begin) * step;
        for (int32_t w = columns.begin; w < columns.end; ++w, at_position += step) {
          const WidePack<T> x = pack_at(at_position);
          for (int k = 0; k < kCount; ++k)
            line[k] += column_weights[w] * static_cast<Compute<T>>(x.v[k]);
        }
        for (int k = 0; k < kCount; ++k) sum[k] += row_weights[h] * line[k];
      }
    }
    WidePack<T> y;
    for (int k = 0; k < kCount; ++k) y.v[k] = sum[k];
    reinterpret_cast<WidePack<T>*>(body.y)[i] = y;
  }
};

}  // namespace crema::roi
