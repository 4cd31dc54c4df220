// Softmax on the CPU.
#include "kernels/softmax/softmax.h"

#include <algorithm>

#include "kernels/pointwise/pointwise_math.h"
#include "kernels/softmax/softmax_kernels.h"
#include "kernels/softmax/softmax_positions.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int64_t kBlock = kSoftmaxBlock;

template <typename T>
void forward_row(int64_t classes, const T* x, T* y) {
  T largest = x[0], sum = 0;
#pragma omp simd reduction(max : largest)
  for (int64_t k = 0; k < classes; ++k) largest = x[k] > largest ? x[k] : largest;
#pragma omp simd reduction(+ : sum)
  for (int64_t k = 0; k < classes; ++k) {
    y[k] = exp_of(x[k] - largest);
    sum += y[k];
  }
#pragma omp simd
  for (int64_t k = 0; k < classes; ++k) y[k] /= sum;
}

template <typename T>
void backward_row(int64_t classes, const T* y, const T* dy, T* dx) {
  T dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t k = 0; k < classes; ++k) dot += y[k] * dy[k];
#pragma omp simd
  for (int64_t k = 0; k < classes; ++k) dx[k] = y[k] * (dy[k] - dot);
}

// `count` adjacent positions, whose classes are `stride` apart.
template <typename T>
void forward_block(int64_t classes, int64_t stride, int64_t count, const T* x, T* y) {
  T largest[kBlock], sum[kBlock];
  std::copy(x, x + count, largest);
  std::fill(sum, sum + count, T(0));
  for (int64_t k = 1; k < classes; ++k) {
    const T* row = x + k * stride;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) largest[i] = row[i] > largest[i] ? row[i] : largest[i];
  }
  for (int64_t k = 0; k < classes; ++k) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const T value = exp_of(x[k * stride + i] - largest[i]);
      y[k * stride + i] = value;
      sum[i] += value;
    }
  }
  for (int64_t k = 0; k < classes; ++k) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) y[k * stride + i] /= sum[i];
  }
}

template <typename T>
void backward_block(int64_t classes, int64_t stride, int64_t count, const T* y, const T* dy,
                    T* dx) {
  T dot[kBlock];
  std::fill(dot, dot + count, T(0));
  for (int64_t k = 0; k < classes; ++k) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) dot[i] += y[k * stride + i] * dy[k * stride + i];
  }
  for (int64_t k = 0; k < classes; ++k) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i)
      dx[k * stride + i] = y[k * stride + i] * (dy[k * stride + i] - dot[i]);
  }
}

Refusal softmax_forward_vectorized(Context&, const SoftmaxView& view, const Tensor& x,
                                   const Tensor& y) {
  on(x, [&]<typename T>() {
    over_softmax_blocks(view, [&](const SoftmaxBlock& block) {
      const T* from = x.data<T>() + block.at;
      T* to = y.data<T>() + block.at;
      if (softmax_by_rows(view)) return forward_row(view.classes, from, to);
      SoftmaxTile<T> tile(view);
      const T* matrix = tile.read(from, block.count);
      forward_block(view.classes, tile.stride(), block.count, matrix, tile.write(to));
      tile.finish(to, block.count);
    });
  });
  return nullptr;
}

Refusal softmax_backward_vectorized(Context&, const SoftmaxView& view, const Tensor& y,
                                    const Tensor& dy, const Tensor& dx) {
  on(y, [&]<typename T>() {
    over_softmax_blocks(view, [&](const SoftmaxBlock& block) {
      const T *from = y.data<T>() + block.at, *gradient = dy.data<T>() + block.at;
      T* to = dx.data<T>() + block.at;
      if (softmax_by_rows(view)) return backward_row(view.classes, from, gradient, to);
      SoftmaxTile<T> y_tile(view), dy_tile(view);
      const T* matrix = y_tile.read(from, block.count);
      const T* gradients = dy_tile.read(gradient, block.count);
      backward_block(view.classes, y_tile.stride(), block.count, matrix, gradients,
                     dy_tile.write(to));
      dy_tile.finish(to, block.count);
    });
  });
  return nullptr;
}

REGISTER_KERNEL(softmax_forward_kernels, "vectorized", RunsOn::cpu, 10, softmax_forward_vectorized);
REGISTER_KERNEL(softmax_backward_kernels, "vectorized", RunsOn::cpu, 10,
                softmax_backward_vectorized);

}  // namespace

constinit decltype(softmax_forward_kernels) softmax_forward_kernels("softmax");
constinit decltype(softmax_backward_kernels) softmax_backward_kernels("the gradient of softmax");

void softmax_forward(Context& context, const SoftmaxView& view, const Tensor& x, const Tensor& y) {
  softmax_forward_kernels.run(context, view, x, y);
}

void softmax_backward(Context& context, const SoftmaxView& view, const Tensor& y, const Tensor& dy,
                      const Tensor& dx) {
  softmax_backward_kernels.run(context, view, y, dy, dx);
}

}  // namespace crema
