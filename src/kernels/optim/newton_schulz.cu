#include "kernels/optim/newton_schulz.h"

#include <algorithm>
#include <cmath>

#include "device/parallel.h"
#include "kernels/gemm/gemm.h"
#include "kernels/move/reorder.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reduce_values.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr float kA = 3.4445f, kB = -4.775f, kC = 2.0315f;

// to = from / (sqrt(*squares) + epsilon).
template <typename T>
struct Normalized {
  T* to;
  const T *from, *squares;
  CREMA_HD void operator()(int64_t i) const { to[i] = from[i] / (std::sqrt(*squares) + T(1e-7)); }
};

// b * A + a * I: what the fifth power is added to. With the identity in it, one product with X is
// the whole step.
template <typename T>
struct LowerPowers {
  T* to;
  const T* square;
  int64_t side;
  CREMA_HD void operator()(int64_t i) const {
    to[i] = T(kB) * square[i] + (i % (side + 1) == 0 ? T(kA) : T(0));
  }
};

}  // namespace

NewtonSchulz::NewtonSchulz(Context& context, std::vector<Matrix> matrices,
                           const MuonOptions& options, DType dtype)
    : matrices_(std::move(matrices)), options_(options) {
  int64_t count = 1, side = 1;
  bool blocked = false;
  for (const Matrix& matrix : matrices_) {
    blocked = blocked || matrix.format.order == Order::blocked;
    count = std::max(count, matrix.rows() * matrix.columns());
    side = std::max(side, std::min(matrix.rows(), matrix.columns()));
  }
  const auto scratch = [&](int64_t elements) { return Tensor(context, Shape{elements}, dtype); };
  x_ = scratch(count);
  next_ = scratch(count);
  if (blocked) plain_ = scratch(count);
  square_ = scratch(side * side);
  polynomial_ = scratch(side * side);
  norm_ = scratch(1);
}

template <typename T>
void NewtonSchulz::run_one(Context& context, const Matrix& matrix, T* m) const {
  const int64_t rows = matrix.rows(), columns = matrix.columns(), count = rows * columns;
  const bool wide = rows <= columns;
  const int64_t side = wide ? rows : columns;
  T *x = x_.data<T>(), *next = next_.data<T>();
  T *const square = square_.data<T>(), *const polynomial = polynomial_.data<T>();
  const auto multiply = [&](Gemm g, const T* a, const T* b, T* c) {
    g.precision = options_.precision;
    gemm(context, g, a, b, c);
  };
  const auto larger = static_cast<float>(std::max(rows, columns));
  const float scale = options_.adam_scale ? 0.2f * std::sqrt(larger) : 1;
  parallel_sum<T>(context, {1, rows, columns}, SquaredMatrix<T>{m, columns}, {norm_.data<T>()});
  parallel_for(context, count, Normalized<T>{x, m, norm_.data<T>()});
  for (int step = 0; step < options_.steps; ++step) {
    const bool last = step + 1 == options_.steps;
    multiply({!wide, wide, side, side, wide ? columns : rows}, x, x, square);
    parallel_for(context, side * side, LowerPowers<T>{polynomial, square, side});
    multiply({false, false, side, side, side, kC, 1}, square, square, polynomial);
    const Gemm product{false, false, rows, columns, side, last ? scale : 1};
    T* const to = last ? m : next;
    wide ? multiply(product, polynomial, x, to) : multiply(product, x, polynomial, to);
    std::swap(x, next);
  }
}

// The order of columns does not matter, nor do columns of zeros: only blocks have to be undone.
void NewtonSchulz::run(Context& context, const Tensor& arena) const {
  for (const Matrix& matrix : matrices_) {
    const size_t offset = static_cast<size_t>(matrix.offset) * size_of(arena.dtype());
    const Tensor stored(arena.memory(), offset, matrix.shape, arena.dtype(), matrix.format);
    const bool blocked = matrix.format.order == Order::blocked;
    const Tensor plain = blocked ? Tensor(plain_.memory(), 0, matrix.shape, arena.dtype()) : stored;
    if (blocked) reorder(context, stored, plain);
    on(arena, [&]<typename T>() { run_one<T>(context, matrix, plain.data<T>()); });
    if (blocked) reorder(context, plain, stored);
  }
}

}  // namespace crema
