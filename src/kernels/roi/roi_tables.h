// Tables of where the cells of each RoI are on a feature map, separately along height and width.
// The weight of a position in a cell is the product of a row weight and a column weight, so two
// short tables per RoI describe all of it. They are float32 for every type of x, so that all types
// compute the same cells.
#pragma once

#include <cmath>

#include "base/host_device.h"
#include "kernels/roi/roi_pool.h"

namespace crema::roi {

struct Span {
  int32_t begin, end;  // [begin, end)
  CREMA_HD bool empty() const { return begin >= end; }
};

CREMA_HD inline int32_t whole(float value) {
  return static_cast<int32_t>(value > 1e8f ? 1e8f : value > -1e8f ? value : -1e8f);
}
CREMA_HD inline int32_t within(int32_t value, int32_t minimum, int32_t maximum) {
  return value < minimum ? minimum : value > maximum ? maximum : value;
}

// One axis of one RoI.
struct RoiSide {
  RoiPoolKind kind;
  float from, to;  // in pixels of the image
  float scale, margin, offset;
  int32_t cells, extent;  // of the grid; of the map
  int32_t samples;

  CREMA_HD Span clipped(int32_t begin, int32_t end) const {
    return {within(begin, 0, extent), within(end, 0, extent)};
  }

  // Borders are rounded to positions of the map.
  CREMA_HD Span max_cell(int32_t cell) const {
    const float more = (to - from + 1) * margin;
    return cell_between(whole(roundf((from - more) * scale)), whole(roundf((to + more) * scale)),
                        cell);
  }
  CREMA_HD Span cell_between(int32_t begin, int32_t end, int32_t cell) const {
    const int32_t size = end - begin + 1 > 1 ? end - begin + 1 : 1;
    const float each = static_cast<float>(size) / static_cast<float>(cells);
    return clipped(whole(floorf(static_cast<float>(cell) * each)) + begin,
                   whole(ceilf(static_cast<float>(cell + 1) * each)) + begin);
  }
  // The positions of one side of a ring's rectangle, both ends included; one position where the
  // corners are swapped.
  CREMA_HD Span ring_side() const {
    const int32_t begin = whole(floorf((from + 1 + offset) * scale + 0.5f));
    const int32_t end = whole(ceilf((to + 1 - offset) * scale - 0.5f));
    const int32_t middle = (begin + end) / 2;
    return begin > end ? Span{middle, middle} : Span{begin, end};
  }
  CREMA_HD Span mean_cell(int32_t cell) const {
    const float begin = roundf(from) * scale, end = (roundf(to) + 1) * scale;
    const float each = (end - begin > 0.1f ? end - begin : 0.1f) / static_cast<float>(cells);
    return clipped(whole(floorf(static_cast<float>(cell) * each + begin)),
                   whole(ceilf(static_cast<float>(cell + 1) * each + begin)));
  }

  // Adds the weight of a point to the weights of the two positions around it.
  CREMA_HD void interpolate(float point, float weight, float* weights, Span* touched) const {
    const float maximum = static_cast<float>(extent - 1);
    const float at = point < 0 ? 0 : point > maximum ? maximum : point;
    const int32_t low = whole(floorf(at)), high = low + 1 < extent ? low + 1 : low;
    const float part = at - static_cast<float>(low);
    weights[low] += weight * (1 - part);
    weights[high] += weight * part;
    touched->begin = low < touched->begin ? low : touched->begin;
    touched->end = high + 1 > touched->end ? high + 1 : touched->end;
  }
  CREMA_HD Span sampled_cell(int32_t cell, float* weights) const {
    const float more = (to - from + 1) * margin;
    const float begin = (from - more) * scale, size = (to + more) * scale - begin;
    const float each = (size > 1 ? size : 1) / static_cast<float>(cells);
    const int32_t count = samples > 0 ? samples : whole(ceilf(each));
    const float step = each / static_cast<float>(count);
    Span touched{extent, 0};
    for (int32_t i = 0; i < count; ++i) {
      const float point =
          begin + static_cast<float>(cell) * each + (static_cast<float>(i) + 0.5f) * step;
      if (point < -1 || point > static_cast<float>(extent)) continue;
      interpolate(point, 1 / static_cast<float>(count), weights, &touched);
    }
    return touched;
  }
  // The first and the last of the `cells` corners are on the border of the RoI.
  CREMA_HD Span corner(int32_t cell, float* weights) const {
    const float more = (to - from + 1) * margin;
    const float begin = (from - more) * scale - 0.5f, end = (to + more) * scale - 0.5f;
    const float each = (end - begin) / static_cast<float>(cells - 1);
    const float point = begin + static_cast<float>(cell) * each;
    Span touched{extent, 0};
    const bool outside = point < -0.5f || point > static_cast<float>(extent) - 0.5f;
    if (end > begin && !outside) interpolate(point, 1, weights, &touched);
    return touched;
  }

  // The positions that a cell reads. weights: one per position, zero before the call; max and ring
  // have none.
  CREMA_HD Span cell(int32_t at, float* weights) const {
    switch (kind) {
      case RoiPoolKind::max:
        return max_cell(at);
      case RoiPoolKind::ring: {
        const Span side = ring_side();
        return cell_between(side.begin, side.end, at);
      }
      case RoiPoolKind::mean: {
        const Span positions = mean_cell(at);
        for (int32_t i = positions.begin; i < positions.end; ++i) {
          weights[i] = 1 / static_cast<float>(positions.end - positions.begin);
        }
        return positions;
      }
      case RoiPoolKind::samples:
        return sampled_cell(at, weights);
      case RoiPoolKind::corners:
        break;
    }
    return corner(at, weights);
  }
};

// Bit masks of the RoIs that read each row and each column of the map, so that the gradient of a
// position finds its readers without testing all RoIs. Where each cell has its own channels there
// is one set for each row or column of the grid; otherwise one for all.
struct RoiReaders {
  int32_t words = 0;  // of 32 RoIs
  int32_t row_sets = 1, column_sets = 1;
  uint32_t* rows = nullptr;     // row_sets x images x height x words
  uint32_t* columns = nullptr;  // column_sets x width x words
};

// The tables in a workspace. Entries of the grid are rows followed by columns, and so are those of
// the map.
struct RoiTables {
  int32_t rois, rows, columns, images, height, width;
  int32_t* image = nullptr;   // of each RoI; -1: none
  Span* cells = nullptr;      // RoIs x (rows + columns): positions that a row or column reads
  Span* positions = nullptr;  // RoIs x (height + width): rows or columns that read a position, in a
                              // GPU's backward
  Span* holes =
      nullptr;  // RoIs x 2, of rings: positions strictly between begin and end are excluded
  float* weights = nullptr;  // RoIs x (rows x height + columns x width); max and ring: none
  RoiReaders readers{};      // in a GPU's backward

  CREMA_HD Span row(int32_t r, int32_t i) const { return cells[r * (rows + columns) + i]; }
  CREMA_HD Span column(int32_t r, int32_t j) const {
    return cells[r * (rows + columns) + rows + j];
  }
  CREMA_HD Span rows_at(int32_t r, int32_t h) const { return positions[r * (height + width) + h]; }
  CREMA_HD Span columns_at(int32_t r, int32_t w) const {
    return positions[r * (height + width) + height + w];
  }
  // The words of a row, or a column, of a set.
  CREMA_HD const uint32_t* row_readers(int32_t image, int32_t h, int32_t set) const {
    return readers.rows + ((set * images + image) * height + h) * readers.words;
  }
  CREMA_HD const uint32_t* column_readers(int32_t w, int32_t set) const {
    return readers.columns + (set * width + w) * readers.words;
  }
  // Calls visit(r) for the RoIs whose bits are set in a word, in order.
  template <typename Visit>
  CREMA_HD static void for_bits(int32_t word, uint32_t bits, const Visit& visit) {
    for (; bits != 0; bits &= bits - 1) {
#ifdef __CUDA_ARCH__
      visit(32 * word + __ffs(static_cast<int>(bits)) - 1);
#else
      visit(32 * word + __builtin_ctz(bits));
#endif
    }
  }
  // Calls visit(r) for the RoIs that read a position of an image.
  template <typename Visit>
  CREMA_HD void for_readers(int32_t image, int32_t h, int32_t w, int32_t row_set,
                            int32_t column_set, const Visit& visit) const {
    const uint32_t *of_row = row_readers(image, h, row_set),
                   *of_column = column_readers(w, column_set);
    for (int32_t k = 0; k < readers.words; ++k) for_bits(k, of_row[k] & of_column[k], visit);
  }
  CREMA_HD int32_t weights_each() const { return rows * height + columns * width; }
  CREMA_HD float* row_weights(int32_t r, int32_t i) const {
    return weights + static_cast<int64_t>(r) * weights_each() + i * height;
  }
  CREMA_HD float* column_weights(int32_t r, int32_t j) const {
    return row_weights(r, rows) + static_cast<int64_t>(j) * width;
  }
};

}  // namespace crema::roi
