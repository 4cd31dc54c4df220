// For each destination pixel of pooling, the list of source pixels it reads: with these lists the
// CPU's loops need no border handling.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/pool/pool_geometry.h"

namespace crema {

// One source pixel of a destination pixel: forward a cell of the window, backward a window that
// contains the destination pixel.
template <typename T>
struct Tap {
  int64_t at;    // the source pixel, relative to the base of its list
  int32_t cell;  // index of the cell in the window
  T weight;      // for average pooling
};

// The taps of every destination pixel. Pixels with the same pattern share one list: forward, all
// pixels away from the border; backward, those whose distance is a multiple of the stride.
template <typename T>
class Taps {
 public:
  struct List {
    const Tap<T>* taps;
    int count;
    int64_t base;
  };

  Taps(const PoolGeometry& g, bool backward) {
    for (int axis = 0; axis < 3; ++axis) axes_[axis] = Axis(g, axis, backward);
    extent_ = backward ? g.out : g.in;
    for (const auto& depth : axes_[0].patterns) {
      for (const auto& row : axes_[1].patterns) {
        for (const auto& column : axes_[2].patterns) {
          lists_.push_back({taps_.size(), depth.size() * row.size() * column.size()});
          for (const Tap<T>& a : depth) {
            for (const Tap<T>& b : row) {
              for (const Tap<T>& c : column) {
                taps_.push_back(
                    {(a.at * extent_[1] + b.at) * extent_[2] + c.at,
                     static_cast<int32_t>((a.cell * g.kernel[1] + b.cell) * g.kernel[2] + c.cell),
                     a.weight * b.weight * c.weight});
              }
            }
          }
        }
      }
    }
  }

  List of(int64_t d, int64_t h, int64_t w) const {
    const auto &a = axes_[0].positions[d], &b = axes_[1].positions[h], &c = axes_[2].positions[w];
    const size_t rows = axes_[1].patterns.size(), columns = axes_[2].patterns.size();
    const auto& [first, count] = lists_[(a.pattern * rows + b.pattern) * columns + c.pattern];
    return {taps_.data() + first, static_cast<int>(count),
            (a.base * extent_[1] + b.base) * extent_[2] + c.base};
  }

 private:
  // The taps along one axis.
  struct Axis {
    struct Position {
      size_t pattern;
      int64_t base;
    };
    std::vector<std::vector<Tap<T>>> patterns;
    std::vector<Position> positions;

    Axis() = default;
    Axis(const PoolGeometry& g, int axis, bool backward) {
      const auto weight = [&](int64_t o) {
        return T(1) / static_cast<T>(std::max<int64_t>(g.counted(axis, o), 1));
      };
      const auto same = [](const Tap<T>& a, const Tap<T>& b) {
        return a.at == b.at && a.cell == b.cell && a.weight == b.weight;
      };
      const int64_t extent = backward ? g.in[axis] : g.out[axis];
      for (int64_t i = 0; i < extent; ++i) {
        const int64_t begin = backward ? g.output_begin(axis, i) : g.input_begin(axis, i);
        const int64_t end = backward ? g.output_end(axis, i) : g.input_end(axis, i);
        std::vector<Tap<T>> taps;
        for (int64_t k = begin; k < end; ++k) {
          const int64_t cell =
              backward ? g.offset_in_window(axis, k, i) : g.offset_in_window(axis, i, k);
          taps.push_back({k - begin, static_cast<int32_t>(cell), weight(backward ? k : i)});
        }
        size_t pattern = 0;
        while (pattern < patterns.size() &&
               !std::equal(taps.begin(), taps.end(), patterns[pattern].begin(),
                           patterns[pattern].end(), same)) {
          ++pattern;
        }
        if (pattern == patterns.size()) patterns.push_back(taps);
        positions.push_back({pattern, begin});
      }
    }
  };

  Axis axes_[3];
  const int64_t* extent_;  // of the source
  std::vector<Tap<T>> taps_;
  std::vector<std::pair<size_t, size_t>> lists_;  // first tap and count
};

}  // namespace crema
