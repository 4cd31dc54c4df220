#include "kernels/move/strided_copy.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/move/reorder.h"
#include "kernels/move/sorted_moves.h"
#include "kernels/pointwise/pointwise.h"

namespace crema {
namespace {

constexpr int kMaxKeptAxes = 6, kMaxSums = 2;

// The reference. The outer axes are all but the last, which is the columns.
template <typename T, int kOuter, bool kSums>
struct MoveBody {
  const T* x;
  T* y;
  MovedAxis outer[kOuter > 0 ? kOuter : 1], column, sums[kMaxSums];
  Compute<T> factor;

  CREMA_HD void operator()(int64_t row, int64_t at) const {
    int64_t to = at * column.to, from = at * column.from;
    for (int axis = kOuter - 1; axis >= 0; --axis) {
      const int64_t extent = outer[axis].extent, i = row % extent;
      row /= extent;
      to += i * outer[axis].to;
      from += i * outer[axis].from;
    }
    if constexpr (kSums) {
      Compute<T> sum = 0;
      for (int64_t i = 0; i < sums[0].extent; ++i) {
        for (int64_t k = 0; k < sums[1].extent; ++k)
          sum += Compute<T>(x[from + i * sums[0].from + k * sums[1].from]);
      }
      y[to] = factor * sum;
    } else {
      y[to] = factor * Compute<T>(x[from]);
    }
  }
};

template <int kOuter>
void move_each(Context& context, const SortedMoves& s, const Tensor& x, const Tensor& y) {
  on_real(y, [&]<typename T>() {
    const auto with_sums = [&]<bool kSums>() {
      MoveBody<T, kOuter, kSums> body{};
      body.x = x.data<T>() + s.from_start;
      body.y = y.data<T>() + s.to_start;
      body.factor = s.factor;
      if (!s.kept.empty()) body.column = s.kept.back();
      int64_t rows = 1;
      for (int axis = 0; axis < kOuter; ++axis) {
        body.outer[axis] = s.kept[axis];
        rows *= s.kept[axis].extent;
      }
      for (size_t i = 0; i < s.sums.size(); ++i) body.sums[i] = s.sums[i];
      parallel_rows(context, rows, body.column.extent, body);
    };
    if (s.sums.empty()) {
      with_sums.template operator()<false>();
    } else {
      with_sums.template operator()<true>();
    }
  });
}

Refusal strided_copy_plain(Context& context, const SortedMoves& s, const Tensor& x,
                           const Tensor& y) {
  switch (s.kept.size()) {
    case 0:
    case 1:
      move_each<0>(context, s, x, y);
      break;
    case 2:
      move_each<1>(context, s, x, y);
      break;
    case 3:
      move_each<2>(context, s, x, y);
      break;
    case 4:
      move_each<3>(context, s, x, y);
      break;
    case 5:
      move_each<4>(context, s, x, y);
      break;
    default:
      move_each<5>(context, s, x, y);
  }
  return nullptr;
}

// Merges adjacent axes whose steps are those of one longer axis.
void join(std::vector<MovedAxis>& axes) {
  std::vector<MovedAxis> merged;
  for (const MovedAxis& axis : axes) {
    if (!merged.empty() && merged.back().to == axis.to * axis.extent &&
        merged.back().from == axis.from * axis.extent) {
      merged.back() = {merged.back().extent * axis.extent, axis.to, axis.from};
    } else {
      merged.push_back(axis);
    }
  }
  axes = merged;
}

// Batches of large matrices to transpose: reorder() does it in tiles.
Refusal copy_by_transpose(Context& context, const SortedMoves& s, const Tensor& x,
                          const Tensor& y) {
  constexpr Refusal kNoTransposition = "for transpositions of large matrices only";
  if (!s.sums.empty() || s.to_start != 0 || s.from_start != 0 || s.factor != 1)
    return kNoTransposition;
  std::vector<MovedAxis> axes = s.kept;
  if (axes.size() == 2) axes.insert(axes.begin(), {1, x.count(), x.count()});
  if (axes.size() != 3) return kNoTransposition;
  const MovedAxis &matrices = axes[0], &rows = axes[1], &columns = axes[2];
  const int64_t size = rows.extent * columns.extent;
  if (columns.to != 1 || rows.to != columns.extent || rows.from != 1 ||
      columns.from != rows.extent || matrices.to != size || matrices.from != size ||
      rows.extent < 16 || columns.extent < 16 || x.count() != matrices.extent * size ||
      y.count() != x.count())
    return kNoTransposition;
  const Shape shape{matrices.extent, columns.extent, rows.extent};
  reorder(context, x.reshaped(shape), y.reshaped(shape, Format::channels_last()));
  return nullptr;
}

REGISTER_KERNEL(strided_copy_kernels, "transpose", RunsOn::both, 20, copy_by_transpose);
REGISTER_KERNEL(strided_copy_kernels, "plain", RunsOn::both, 0, strided_copy_plain);

}  // namespace

constinit decltype(strided_copy_kernels) strided_copy_kernels("a strided copy");

SortedMoves::SortedMoves(const StridedCopy& moves)
    : to_start(moves.to_start), from_start(moves.from_start), factor(moves.factor) {
  for (const MovedAxis& axis : moves.axes) {
    if (axis.extent != 1) (axis.to == 0 ? sums : kept).push_back(axis);
  }
  std::stable_sort(kept.begin(), kept.end(), [](const MovedAxis& a, const MovedAxis& b) {
    return std::abs(a.to) > std::abs(b.to);
  });
  std::stable_sort(sums.begin(), sums.end(), [](const MovedAxis& a, const MovedAxis& b) {
    return std::abs(a.from) > std::abs(b.from);
  });
  join(kept);
  join(sums);
}

int64_t StridedCopy::written_count() const {
  int64_t count = 1;
  for (const MovedAxis& axis : axes) count *= axis.to == 0 ? 1 : axis.extent;
  return count;
}

StridedCopy StridedCopy::reversed() const {
  StridedCopy back = *this;
  std::swap(back.to_start, back.from_start);
  for (MovedAxis& axis : back.axes) std::swap(axis.to, axis.from);
  return back;
}

void strided_copy(Context& context, const StridedCopy& moves, const Tensor& x, const Tensor& y) {
  for (const MovedAxis& axis : moves.axes) {
    if (axis.extent == 0) return;
  }
  const SortedMoves s(moves);
  require(s.kept.size() <= kMaxKeptAxes && s.sums.size() <= kMaxSums, "values would move along ",
          s.kept.size() + s.sums.size(), " axes at once: at most ", kMaxKeptAxes, " and ", kMaxSums,
          " that are summed over");
  strided_copy_kernels.run(context, s, x, y);
}

std::vector<int64_t> steps_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  std::vector<int64_t> steps, index(shape.axes(), 0);
  for (int axis = 0; axis < shape.axes(); ++axis) {
    index[axis] = 1;
    steps.push_back(tensor.format().offset(shape, index.data()));
    index[axis] = 0;
  }
  return steps;
}

}  // namespace crema
