#include "kernels/optim/newton_schulz.h"

#include <algorithm>
#include <cmath>

#include "device/parallel.h"
#include "kernels/core/reduce.h"
#include "kernels/core/reduce_values.h"
#include "kernels/gemm/gemm.h"
#include "kernels/move/reorder.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int kSteps = 5;
constexpr float kA = 3.4445f, kB = -4.775f, kC = 2.0315f;

// x * factor, or x / (sqrt(*squares) + epsilon).
template <typename T>
struct Scaled {
  T* x;
  T factor;
  const T* squares;
  CREMA_HD void operator()(int64_t i) const {
    x[i] *= squares ? 1 / (std::sqrt(*squares) + T(1e-7)) : factor;
  }
};

}  // namespace

NewtonSchulz::NewtonSchulz(Context& context, std::vector<Matrix> matrices, DType dtype)
    : matrices_(std::move(matrices)) {
  int64_t count = 1, side = 1;
  for (const Matrix& matrix : matrices_) {
    count = std::max(count, matrix.shape.count());
    side = std::max(side, std::min(matrix.rows(), matrix.columns()));
  }
  const auto scratch = [&](int64_t elements) { return Tensor(context, Shape{elements}, dtype); };
  x_ = scratch(count);
  next_ = scratch(count);
  square_ = scratch(side * side);
  polynomial_ = scratch(side * side);
  norm_ = scratch(1);
}

template <typename T>
void NewtonSchulz::run_one(Context& context, const Matrix& matrix) const {
  const int64_t rows = matrix.rows(), columns = matrix.columns(), count = rows * columns;
  const bool wide = rows <= columns;
  const int64_t side = wide ? rows : columns;
  T *x = x_.data<T>(), *next = next_.data<T>();
  T *const square = square_.data<T>(), *const polynomial = polynomial_.data<T>();
  const auto copy_of = [&](T* to, const T* from, int64_t elements) {
    copy_bytes(context, to, context.device(), from, context.device(), elements * sizeof(T));
  };
  parallel_sum<T>(context, {1, rows, columns}, SquaredMatrix<T>{x, columns}, {norm_.data<T>()});
  parallel_for(context, count, Scaled<T>{x, 1, norm_.data<T>()});
  for (int step = 0; step < kSteps; ++step) {
    Gemm gram{!wide, wide, side, side, wide ? columns : rows};
    gemm(context, gram, x, x, square);
    copy_of(polynomial, square, side * side);
    gemm(context, Gemm{false, false, side, side, side, kC, kB}, square, square, polynomial);
    copy_of(next, x, count);
    const Gemm product{false, false, rows, columns, side, 1, kA};
    wide ? gemm(context, product, polynomial, x, next)
         : gemm(context, product, x, polynomial, next);
    std::swap(x, next);
  }
  if (x != x_.data<T>()) copy_of(x_.data<T>(), x, count);
  const auto size = static_cast<double>(std::max(rows, columns));
  parallel_for(context, count,
               Scaled<T>{x_.data<T>(), static_cast<T>(0.2 * std::sqrt(size)), nullptr});
}

void NewtonSchulz::run(Context& context, const Tensor& arena) const {
  for (const Matrix& matrix : matrices_) {
    const size_t offset = static_cast<size_t>(matrix.offset) * size_of(arena.dtype());
    const Tensor stored(arena.memory(), offset, matrix.shape, arena.dtype(), matrix.format);
    const Tensor plain(x_.memory(), 0, matrix.shape, arena.dtype());
    reorder(context, stored, plain);
    on(arena, [&]<typename T>() { run_one<T>(context, matrix); });
    reorder(context, plain, stored);
  }
}

}  // namespace crema
