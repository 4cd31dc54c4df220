// Softmax for every device: one index a place, which walks along the classes; on the GPU a block
// for each place where the classes lie next to each other.
#include "kernels/softmax.h"

#include "device/parallel.h"
#include "kernels/pointwise_math.h"
#include "kernels/softmax_plain.h"
#include "tensor/on.h"
#ifdef __CUDACC__
#include "kernels/softmax_rows.cuh"
#include "kernels/warp.cuh"
#endif

namespace crema {
namespace {

template <typename T>
struct SoftmaxForward {
  SoftmaxView view;
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t place) const {
    const int64_t start = place / view.inner * view.classes * view.inner + place % view.inner;
    T largest = x[start], sum = 0;
    for (int64_t k = 1; k < view.classes; ++k) {
      const T value = x[start + k * view.inner];
      largest = value > largest ? value : largest;
    }
    for (int64_t k = 0; k < view.classes; ++k) {
      const T value = exp_of(x[start + k * view.inner] - largest);
      y[start + k * view.inner] = value;
      sum += value;
    }
    for (int64_t k = 0; k < view.classes; ++k) y[start + k * view.inner] /= sum;
  }
};

template <typename T>
struct SoftmaxBackward {
  SoftmaxView view;
  const T *y, *dy;
  T* dx;
  CREMA_HD void operator()(int64_t place) const {
    const int64_t start = place / view.inner * view.classes * view.inner + place % view.inner;
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

template <typename T>
__global__ void softmax_rows(int64_t classes, const T* x, T* y) {
  x += blockIdx.x * classes;
  y += blockIdx.x * classes;
  T largest = x[0], sum = 0;
  for (int64_t k = threadIdx.x; k < classes; k += blockDim.x)
    largest = x[k] > largest ? x[k] : largest;
  largest = block_all(largest, Larger{});
  for (int64_t k = threadIdx.x; k < classes; k += blockDim.x) {
    const T value = exp_of(x[k] - largest);
    y[k] = value;
    sum += value;
  }
  sum = block_all(sum, Plus{});
  for (int64_t k = threadIdx.x; k < classes; k += blockDim.x) y[k] /= sum;
}

template <typename T>
__global__ void softmax_gradient_rows(int64_t classes, const T* y, const T* dy, T* dx) {
  const int64_t start = blockIdx.x * classes;
  T dot = 0;
  for (int64_t k = threadIdx.x; k < classes; k += blockDim.x) dot += y[start + k] * dy[start + k];
  dot = block_all(dot, Plus{});
  for (int64_t k = threadIdx.x; k < classes; k += blockDim.x)
    dx[start + k] = y[start + k] * (dy[start + k] - dot);
}

#endif

}  // namespace

SoftmaxView SoftmaxView::of(const Shape& shape, const Format& format, int axis) {
  if (same_layout(format, Format::plain(), shape))
    return {shape.count(0, axis), shape[axis], shape.count(axis + 1)};
  require(axis == 1, "softmax over axis ", axis, " does not take channels-last blobs");
  return {shape[0] * shape.count(2), shape[1], 1};
}

void softmax_forward_plain(Context& context, const SoftmaxView& view, const Tensor& x,
                           const Tensor& y) {
  on(x, [&]<typename T>() {
#ifdef __CUDACC__
    if (launch_by_rows(context, view, softmax_rows<T>, view.classes, x.data<T>(), y.data<T>()))
      return;
#endif
    parallel_for(context, view.places(), SoftmaxForward<T>{view, x.data<T>(), y.data<T>()}, 64);
  });
}

void softmax_backward_plain(Context& context, const SoftmaxView& view, const Tensor& y,
                            const Tensor& dy, const Tensor& dx) {
  on(y, [&]<typename T>() {
#ifdef __CUDACC__
    if (launch_by_rows(context, view, softmax_gradient_rows<T>, view.classes, y.data<T>(),
                       dy.data<T>(), dx.data<T>()))
      return;
#endif
    parallel_for(context, view.places(),
                 SoftmaxBackward<T>{view, y.data<T>(), dy.data<T>(), dx.data<T>()}, 64);
  });
}

}  // namespace crema
