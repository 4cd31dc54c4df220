#include "kernels/norm/l2_normalize.h"

#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reduce_values.h"

namespace crema {
namespace {

template <typename T>
struct ScaleRow {
  const T* squares;
  int64_t columns;
  T epsilon;
  T* w;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    w[row * columns + column] /= sqrt(squares[row] + epsilon);
  }
};

}  // namespace

void l2_normalize_rows(Context& context, double epsilon, const Tensor& w, const Tensor& scratch) {
  const int64_t rows = w.shape()[0], columns = w.shape().count(1);
  on(w, [&]<typename T>() {
    T *values = w.data<T>(), *squares = scratch.data<T>();
    parallel_sum<T>(context, {rows, 1, columns}, SquaredRow<T>{values, columns}, {squares});
    parallel_rows(context, rows, columns,
                  ScaleRow<T>{squares, columns, static_cast<T>(epsilon), values});
  });
}

}  // namespace crema
