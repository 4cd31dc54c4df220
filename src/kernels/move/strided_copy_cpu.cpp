// strided_copy() on a CPU. The three axes with the shortest strides are loops, split into pieces
// over the threads; along the other axes a thread steps from piece to piece without division.
#include <algorithm>
#include <cstdlib>

#include "base/ceil_div.h"
#include "kernels/core/threads.h"
#include "kernels/move/sorted_moves.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int64_t kPiece = 8192;  // elements that are copied between two steps of the outer axes
constexpr int64_t kTile = 32;     // of a transposition: both sides stay in the L1 cache
constexpr int64_t kLongSum = 16;  // shortest run that gets its own summation loop

// y[i * to] = factor * x[i * from] along one axis.
template <typename T>
void move_line(const MovedAxis& axis, T factor, const T* x, T* y) {
  const int64_t count = axis.extent, to = axis.to, from = axis.from;
  if (to == 1 && from == 1) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) y[i] = factor * x[i];
  } else if (to == 1 && from == -1) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) y[i] = factor * x[-i];
  } else if (to == 1 && from == 0) {
    std::fill(y, y + count, factor * *x);
  } else {
    for (int64_t i = 0; i < count; ++i) y[i * to] = factor * x[i * from];
  }
}

template <typename T>
void move_plane(const MovedAxis& rows, const MovedAxis& columns, T factor, const T* x, T* y) {
  if (std::abs(columns.from) <= 1 || std::abs(rows.from) > 1 || rows.extent < 2) {
    for (int64_t i = 0; i < rows.extent; ++i)
      move_line(columns, factor, x + i * rows.from, y + i * rows.to);
    return;
  }
  // Neighbors in x are along the rows. The inner loop runs along the longer side of a tile.
  for (int64_t row = 0; row < rows.extent; row += kTile) {
    const int64_t height = std::min(kTile, rows.extent - row);
    for (int64_t column = 0; column < columns.extent; column += kTile) {
      const int64_t width = std::min(kTile, columns.extent - column);
      const T* const from = x + row * rows.from + column * columns.from;
      T* const to = y + row * rows.to + column * columns.to;
      const MovedAxis down{height, rows.to, rows.from}, across{width, columns.to, columns.from};
      const MovedAxis &outer = width < height ? across : down,
                      &inner = width < height ? down : across;
      for (int64_t i = 0; i < outer.extent; ++i)
        move_line(inner, factor, from + i * outer.from, to + i * outer.to);
    }
  }
}

// y[i * to] = factor * the sum of x from i * from on.
template <typename T>
void sum_line(const MovedAxis& axis, const MovedAxis sums[2], T factor, const T* x, T* y) {
  if (sums[1].from == 1 && sums[1].extent >= kLongSum) {
    for (int64_t i = 0; i < axis.extent; ++i) {
      T all = 0;
      for (int64_t k = 0; k < sums[0].extent; ++k) {
        const T* const line = x + i * axis.from + k * sums[0].from;
        T run = 0;
#pragma omp simd reduction(+ : run)
        for (int64_t j = 0; j < sums[1].extent; ++j) run += line[j];
        all += run;
      }
      y[i * axis.to] = factor * all;
    }
    return;
  }
  constexpr int64_t kTogether = 512;
  T run[kTogether];
  for (int64_t first = 0; first < axis.extent; first += kTogether) {
    const int64_t count = std::min(kTogether, axis.extent - first);
    std::fill(run, run + count, T(0));
    for (int64_t k = 0; k < sums[0].extent; ++k) {
      for (int64_t j = 0; j < sums[1].extent; ++j) {
        const T* const line = x + first * axis.from + k * sums[0].from + j * sums[1].from;
        if (axis.from == 1) {
#pragma omp simd
          for (int64_t i = 0; i < count; ++i) run[i] += line[i];
        } else {
          for (int64_t i = 0; i < count; ++i) run[i] += line[i * axis.from];
        }
      }
    }
    for (int64_t i = 0; i < count; ++i) y[(first + i) * axis.to] = factor * run[i];
  }
}

// The three innermost loops, the last one fastest, and the sums inside them.
struct Nest {
  MovedAxis axes[3], sums[2];

  template <typename T>
  void run(bool summing, T factor, const T* x, T* y) const {
    for (int64_t i = 0; i < axes[0].extent; ++i) {
      const T* const from = x + i * axes[0].from;
      T* const to = y + i * axes[0].to;
      if (!summing) {
        move_plane(axes[1], axes[2], factor, from, to);
        continue;
      }
      for (int64_t k = 0; k < axes[1].extent; ++k)
        sum_line(axes[2], sums, factor, from + k * axes[1].from, to + k * axes[1].to);
    }
  }
  int64_t terms() const {
    int64_t count = sums[0].extent * sums[1].extent;
    for (const MovedAxis& axis : axes) count *= axis.extent;
    return count;
  }
};

// All loops: over the outer axes, over pieces of the longest inner axis, and a Nest.
struct Walk {
  std::vector<MovedAxis> outer;  // the last one is fastest
  Nest nest;
  int split = 0;  // the axis of the nest that is split into pieces
  int64_t piece = 1, pieces = 1;

  explicit Walk(const SortedMoves& s) : outer(s.kept) {
    const auto take = [&](std::vector<MovedAxis>::iterator at) {
      const MovedAxis axis = *at;
      outer.erase(at);
      return axis;
    };
    if (!outer.empty()) nest.axes[2] = take(outer.end() - 1);
    if (!outer.empty()) {
      const bool turns = s.sums.empty() && std::abs(nest.axes[2].from) > 1;
      auto beside = outer.end() - 1;
      for (auto at = outer.begin(); turns && at != outer.end(); ++at) {
        if (std::abs(at->from) == 1) beside = at;
      }
      nest.axes[1] = take(beside);
    }
    if (!outer.empty()) nest.axes[0] = take(outer.end() - 1);
    std::copy(s.sums.begin(), s.sums.end(), nest.sums + 2 - s.sums.size());
    for (int axis = 1; axis < 3; ++axis) {
      if (nest.axes[axis].extent > nest.axes[split].extent) split = axis;
    }
    const int64_t longest = nest.axes[split].extent;
    const int64_t wanted = std::clamp<int64_t>(nest.terms() / kPiece, 1, longest);
    piece = ceil_div(longest, wanted);
    pieces = ceil_div(longest, piece);
  }

  int64_t tasks() const {
    int64_t count = pieces;
    for (const MovedAxis& axis : outer) count *= axis.extent;
    return count;
  }

  template <typename T>
  void run(int64_t first, int64_t end, bool summing, T factor, const T* x, T* y) const {
    std::vector<int64_t> at(outer.size(), 0);
    int64_t number = first / pieces, begin = first % pieces * piece, to = 0, from = 0;
    for (size_t axis = at.size(); axis-- > 0;) {
      at[axis] = number % outer[axis].extent;
      number /= outer[axis].extent;
      to += at[axis] * outer[axis].to;
      from += at[axis] * outer[axis].from;
    }
    Nest part = nest;
    const MovedAxis& cut = nest.axes[split];
    for (int64_t task = first; task < end; ++task) {
      part.axes[split].extent = std::min(piece, cut.extent - begin);
      part.run(summing, factor, x + from + begin * cut.from, y + to + begin * cut.to);
      begin += piece;
      if (begin < cut.extent) continue;
      begin = 0;
      for (size_t axis = at.size(); axis-- > 0;) {
        to += outer[axis].to;
        from += outer[axis].from;
        if (++at[axis] < outer[axis].extent) break;
        to -= at[axis] * outer[axis].to;
        from -= at[axis] * outer[axis].from;
        at[axis] = 0;
      }
    }
  }
};

Refusal strided_copy_cpu(Context&, const SortedMoves& moves, const Tensor& x, const Tensor& y) {
  SortedMoves s = moves;
  for (MovedAxis& axis : s.kept) {
    if (axis.to >= 0) continue;
    s.to_start += (axis.extent - 1) * axis.to;
    s.from_start += (axis.extent - 1) * axis.from;
    axis.to = -axis.to;
    axis.from = -axis.from;
  }
  const Walk walk(s);
  const int64_t tasks = walk.tasks(), shares = std::min<int64_t>(tasks, 64);
  on(y, [&]<typename T>() {
    const T* const from = x.data<T>() + s.from_start;
    T* const to = y.data<T>() + s.to_start;
    const T factor = s.factor;
    const bool summing = !s.sums.empty();
    RegionError error;
#pragma omp parallel for schedule(static) if (tasks * walk.nest.terms() / walk.pieces > kPiece)
    for (int64_t share = 0; share < shares; ++share) {
      error.run([&] {
        walk.run(tasks * share / shares, tasks * (share + 1) / shares, summing, factor, from, to);
      });
    }
    error.rethrow();
  });
  return nullptr;
}

REGISTER_KERNEL(strided_copy_kernels, "vectorized", RunsOn::cpu, 10, strided_copy_cpu);

}  // namespace
}  // namespace crema
