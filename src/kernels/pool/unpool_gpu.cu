// Max unpooling on a GPU. Of several values for one position the last one wins: each position first
// gets the number of its last value.
#include "device/parallel.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/pool/unpool_destinations.h"

namespace crema {
namespace {

template <typename T>
struct LatestBody {
  UnpoolDestinations<T> destinations;
  int32_t* latest;  // 1 + index of the value in its row
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t destination = destinations.destination_of(row, column);
#ifdef __CUDA_ARCH__
    if (destination >= 0) atomicMax(latest + destination, static_cast<int32_t>(column) + 1);
#endif
  }
};

template <typename T>
struct UnpoolBody {
  const T* x;
  const int32_t* latest;
  T* y;
  int64_t columns_x, columns_y;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t i = row * columns_y + column;
    y[i] = latest[i] > 0 ? x[row * columns_x + latest[i] - 1] : T(0);
  }
};

// Four elements per thread.
template <typename T>
struct UnpoolFours {
  const T* x;
  const Pack<int32_t, 4>* latest;
  Pack<T, 4>* y;
  int64_t columns_x;
  Divisor fours;  // of a row of y
  CREMA_HD void operator()(int64_t i) const {
    const int64_t row = fours.quotient(static_cast<uint32_t>(i));
    const Pack<int32_t, 4> numbers = latest[i];
    Pack<T, 4> out;
    for (int k = 0; k < 4; ++k)
      out.v[k] = numbers.v[k] > 0 ? x[row * columns_x + numbers.v[k] - 1] : T(0);
    y[i] = out;
  }
};

template <typename T>
struct UnpoolGradient {
  UnpoolDestinations<T> destinations;
  const T* dy;
  T* dx;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t destination = destinations.destination_of(row, column);
    dx[destinations.source(row, column)] = destination < 0 ? T(0) : dy[destination];
  }
};

template <typename T>
void scatter_latest(Context& context, const UnpoolDestinations<T>& destinations, int64_t rows,
                    const Tensor& x, const Tensor& latest, const Tensor& y) {
  zero(context, latest);
  parallel_rows(context, rows, destinations.columns,
                LatestBody<T>{destinations, latest.data<int32_t>()});
  const int64_t columns_y = y.count() / rows;
  if (columns_y % 4 == 0 && y.count() < Divisor::kMax &&
      takes_packs<char>(0, latest.raw(), y.raw())) {
    return parallel_for(
        context, y.count() / 4,
        UnpoolFours<T>{x.data<T>(), latest.data<Pack<int32_t, 4>>(), y.data<Pack<T, 4>>(),
                       destinations.columns, Divisor(columns_y / 4)});
  }
  parallel_rows(context, rows, columns_y,
                UnpoolBody<T>{x.data<T>(), latest.data<int32_t>(), y.data<T>(),
                              destinations.columns, columns_y});
}

Refusal unpool_gpu(Context& context, const Tensor& x, const Tensor& mask, const Tensor& latest,
                   const Tensor& y) {
  on_real(y, [&]<typename T>() {
    scatter_latest(context, destinations_of<T>(mask, y), UnpoolRows::of(x).count, x, latest, y);
  });
  return nullptr;
}

Refusal unpool_gradient_gpu(Context& context, const Tensor& mask, const Tensor& dy,
                            const Tensor& dx) {
  on_real(dx, [&]<typename T>() {
    const UnpoolDestinations<T> destinations = destinations_of<T>(mask, dy);
    parallel_rows(context, UnpoolRows::of(dx).count, destinations.columns,
                  UnpoolGradient<T>{destinations, dy.data<T>(), dx.data<T>()});
  });
  return nullptr;
}

REGISTER_KERNEL(unpool_kernels, "cuda", RunsOn::gpu, 10, unpool_gpu);
REGISTER_KERNEL(unpool_gradient_kernels, "cuda", RunsOn::gpu, 10, unpool_gradient_gpu);

}  // namespace
}  // namespace crema
