// Softmax on every device: one index per position; on the GPU also one warp or block per position
// where the classes are contiguous and many.
#include "kernels/softmax/softmax.h"

#include "device/parallel.h"
#include "kernels/softmax/softmax_kernels.h"
#include "kernels/softmax/softmax_sums.h"
#include "tensor/on.h"
#ifdef __CUDACC__
#include "kernels/softmax/softmax_tile.cuh"
#endif

namespace crema {
namespace {

template <typename T>
struct SoftmaxForward {
  SoftmaxView view;
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t position) const {
    const int64_t start = position / view.inner * view.classes * view.inner + position % view.inner;
    const auto at = [&](int64_t k) { return x[start + k * view.inner]; };
    SoftmaxSums<T> sums;
    sums.add(view.classes, at);
    over_classes<T>(view.classes, at, [&](int64_t k, T value) {
      y[start + k * view.inner] = exp_of(value - sums.largest) / sums.sum;
    });
  }
};

template <typename T>
struct SoftmaxBackward {
  SoftmaxView view;
  const T *y, *dy;
  T* dx;
  CREMA_HD void operator()(int64_t position) const {
    const int64_t start = position / view.inner * view.classes * view.inner + position % view.inner;
    T dot = 0;
    for (int64_t k = 0; k < view.classes; ++k)
      dot += y[start + k * view.inner] * dy[start + k * view.inner];
    for (int64_t k = 0; k < view.classes; ++k) {
      const int64_t i = start + k * view.inner;
      dx[i] = y[i] * (dy[i] - dot);
    }
  }
};

#ifdef __CUDACC__

template <typename T, SoftmaxAlgorithm kWay>
__global__ void __launch_bounds__(256) softmax_kernel(SoftmaxForward<T> body) {
  if constexpr (kWay == SoftmaxAlgorithm::positions) {
    const int64_t position = blockIdx.x * int64_t{kTilePositions} + threadIdx.x;
    if (position < body.view.positions()) body(position);
  } else {
    rewrite_positions<kWay>(body.view, body.x, body.y,
                            [](int64_t, const PositionRow<T, kWay>& row) {
                              const auto at = [&](int64_t k) { return row[k]; };
                              SoftmaxSums<T> sums;
                              sums.add(row.count(), at);
                              if constexpr (kWay != SoftmaxAlgorithm::tiles)
                                combine_sums<kWay>(sums);
                              over_classes<T>(row.count(), at, [&](int64_t k, T value) {
                                row.put(k, exp_of(value - sums.largest) / sums.sum);
                              });
                            });
  }
}

template <typename T, SoftmaxAlgorithm kWay>
__global__ void __launch_bounds__(256) softmax_gradient(SoftmaxBackward<T> body) {
  using Threads = PositionThreads<kWay>;
  extern __shared__ __align__(16) unsigned char memory[];
  const int64_t classes = body.view.classes, positions = body.view.positions();
  const int64_t first = blockIdx.x * int64_t{Threads::kPositions};
  const int64_t position = first + Threads::position();
  if constexpr (kWay == SoftmaxAlgorithm::positions) {
    if (position < positions) body(position);
  } else if constexpr (kWay == SoftmaxAlgorithm::tiles) {
    T* const tile = reinterpret_cast<T*>(memory);
    T* const dy_tile = tile + kTilePositions * classes;
    const int count = static_cast<int>(min(positions - first, int64_t{kTilePositions}) * classes);
    copy_tile(tile, body.y + first * classes, count);
    copy_tile(dy_tile, body.dy + first * classes, count);
    __syncthreads();
    if (position < positions) {
      const T* y = tile + threadIdx.x * classes;
      T* const dy = dy_tile + threadIdx.x * classes;
      const TileOrder order(classes);
      T dot = 0;
      for (int64_t k = 0; k < classes; ++k) dot += y[order(k)] * dy[order(k)];
      for (int64_t k = 0; k < classes; ++k) {
        const int i = order(k);
        dy[i] = y[i] * (dy[i] - dot);
      }
    }
    __syncthreads();
    copy_tile(body.dx + first * classes, dy_tile, count);
  } else if (position < positions) {
    const int64_t start = position * classes;
    T dot = 0;
    for (int64_t k = Threads::lane(); k < classes; k += Threads::kCount)
      dot += body.y[start + k] * body.dy[start + k];
    dot = Threads::all(dot, Plus{});
    for (int64_t k = Threads::lane(); k < classes; k += Threads::kCount)
      body.dx[start + k] = body.y[start + k] * (body.dy[start + k] - dot);
  }
}

#endif

Refusal softmax_forward_plain(Context& context, const SoftmaxView& view, const Tensor& x,
                              const Tensor& y) {
  if (view.positions() == 0) return nullptr;
  on(x, [&]<typename T>() {
    const SoftmaxForward<T> body{view, x.data<T>(), y.data<T>()};
#ifdef __CUDACC__
    if (context.device() == Device::gpu) {
      return with_softmax_algorithm<T>(
          view, 1, INT32_MAX, [&]<SoftmaxAlgorithm kWay>(const LaunchShape& shape) {
            launch(context.gpu(), softmax_kernel<T, kWay>, shape, body);
          });
    }
#endif
    parallel_for(context, view.positions(), body, 64);
  });
  return nullptr;
}

Refusal softmax_backward_plain(Context& context, const SoftmaxView& view, const Tensor& y,
                               const Tensor& dy, const Tensor& dx) {
  if (view.positions() == 0) return nullptr;
  on(y, [&]<typename T>() {
    const SoftmaxBackward<T> body{view, y.data<T>(), dy.data<T>(), dx.data<T>()};
#ifdef __CUDACC__
    if (context.device() == Device::gpu) {
      return with_softmax_algorithm<T>(
          view, 2, INT32_MAX, [&]<SoftmaxAlgorithm kWay>(const LaunchShape& shape) {
            launch(context.gpu(), softmax_gradient<T, kWay>, shape, body);
          });
    }
#endif
    parallel_for(context, view.positions(), body, 64);
  });
  return nullptr;
}

REGISTER_KERNEL(softmax_forward_kernels, "plain", RunsOn::both, 0, softmax_forward_plain);
REGISTER_KERNEL(softmax_backward_kernels, "plain", RunsOn::both, 0, softmax_backward_plain);

}  // namespace

SoftmaxView SoftmaxView::of(const Shape& shape, const Format& format, int axis) {
  if (same_layout(format, Format::row_major(), shape))
    return {shape.count(0, axis), shape[axis], shape.count(axis + 1)};
  require(axis == 1, "softmax over axis ", axis, " does not take channels-last blobs");
  return {shape[0] * shape.count(2), shape[1], 1};
}

}  // namespace crema
