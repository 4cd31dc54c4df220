// Element-wise functions. A layer passes functors, structs with a CREMA_HD const operator() that is
// a template over the real type; the same source becomes the CPU's loop and the GPU's kernel. For
// .cu files only, like device/parallel.h.
//   struct Square { template <typename T> CREMA_HD T operator()(T x) const { return x * x; } };
//   pointwise(context, Square{}, y, x);
#pragma once

#include <algorithm>

#include "base/ceil_div.h"
#include "device/parallel.h"
#include "kernels/core/divisor.h"
#include "kernels/core/pack.h"
#include "tensor/on.h"

namespace crema {

template <typename F, typename T>
struct PointwiseBody1 {
  F f;
  T* y;
  const T* a;
  CREMA_HD void operator()(int64_t i) const { y[i] = f(Compute<T>(a[i])); }
};

template <typename F, typename T>
struct PointwiseBody2 {
  F f;
  T* y;
  const T *a, *b;
  CREMA_HD void operator()(int64_t i) const { y[i] = f(Compute<T>(a[i]), Compute<T>(b[i])); }
};

// The same for 16 bytes at a time, on the GPU.
template <typename F, typename T>
struct PointwisePacks1 {
  static constexpr bool kGpuOnly = true;
  F f;
  WidePack<T>* y;
  const WidePack<T>* a;
  CREMA_HD void operator()(int64_t i) const {
    WidePack<T> p = a[i];
    for (T& value : p.v) value = f(Compute<T>(value));
    y[i] = p;
  }
};

template <typename F, typename T>
struct PointwisePacks2 {
  static constexpr bool kGpuOnly = true;
  F f;
  WidePack<T>* y;
  const WidePack<T>*a, *b;
  CREMA_HD void operator()(int64_t i) const {
    WidePack<T> p = a[i];
    const WidePack<T> q = b[i];
    for (int k = 0; k < kPackCount<T>; ++k) p.v[k] = f(Compute<T>(p.v[k]), Compute<T>(q.v[k]));
    y[i] = p;
  }
};

// y[i] = f(a[i]), f in Compute<T>. All tensors have the same shape, layout and dtype; y may be a,
// but not overlap it otherwise.
template <typename F>
void pointwise(Context& context, const F& f, const Tensor& y, const Tensor& a) {
  on_real(y, [&]<typename T>() {
    if (context.device() == Device::gpu && takes_packs<T>(y.count(), y.raw(), a.raw())) {
      using P = WidePack<T>;
      parallel_for(context, y.count() / kPackCount<T>,
                   PointwisePacks1<F, T>{f, y.data<P>(), a.data<P>()});
    } else {
      parallel_for(context, y.count(), PointwiseBody1<F, T>{f, y.data<T>(), a.data<T>()});
    }
  });
}

// y[i] = f(a[i], b[i]); the same holds, and y may be a or b.
template <typename F>
void pointwise(Context& context, const F& f, const Tensor& y, const Tensor& a, const Tensor& b) {
  on_real(y, [&]<typename T>() {
    if (context.device() == Device::gpu && takes_packs<T>(y.count(), y.raw(), a.raw(), b.raw())) {
      using P = WidePack<T>;
      parallel_for(context, y.count() / kPackCount<T>,
                   PointwisePacks2<F, T>{f, y.data<P>(), a.data<P>(), b.data<P>()});
    } else {
      parallel_for(context, y.count(),
                   PointwiseBody2<F, T>{f, y.data<T>(), a.data<T>(), b.data<T>()});
    }
  });
}

struct Same {
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return x;
  }
};

// y = x; a no-op when both are the same memory.
inline void pointwise_copy(Context& context, const Tensor& y, const Tensor& x) {
  if (y.raw() != x.raw()) pointwise(context, Same{}, y, x);
}

#ifdef __CUDACC__
// `count` pairs, starting at a row and a column. 32-bit indices: a 64-bit division costs more than
// most bodies.
template <typename Body>
__global__ void run_rows(uint32_t count, Divisor columns, int64_t row, int64_t column, Body body) {
  const uint32_t stride = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    uint32_t rest = i;
    const uint32_t whole = columns.split(rest);
    body(row + whole, column + rest);
  }
}

template <typename Body>
void rows_on_gpu(const Gpu& gpu, int64_t rows, int64_t columns, const Body& body) {
  constexpr int64_t kMax = Divisor::kMax - 1;
  const int64_t wide = std::min(columns, kMax), high = std::min(rows, kMax / wide);
  for (int64_t row = 0; row < rows; row += high) {
    for (int64_t column = 0; column < columns; column += wide) {
      const int64_t width = std::min(wide, columns - column);
      const int64_t count = width * std::min(high, rows - row), blocks = ceil_div(count, 256);
      launch(gpu, run_rows<Body>, {static_cast<unsigned>(std::min<int64_t>(blocks, 65536)), 256},
             static_cast<uint32_t>(count), Divisor(width), row, column, body);
    }
  }
}
#endif

// Calls body(row, column) for every pair, concurrently and in any order. On the CPU the columns are
// the inner, vectorised loop: what depends only on the row is computed once per row.
template <typename Body>
void parallel_rows(Context& context, int64_t rows, int64_t columns, const Body& body) {
  if (rows <= 0 || columns <= 0) return;
#ifdef __CUDACC__
  if (context.device() == Device::gpu) return rows_on_gpu(context.gpu(), rows, columns, body);
#endif
  (void)context;
  if constexpr (GpuOnly<Body>::value) {
    fail_on_cpu();
  } else {
    Body local = body;  // each thread's own copy below: stores cannot alias its members, so loops
                        // vectorise
    // Columns that one thread takes at a time: a few long rows use all threads too.
    const int64_t piece = 8192, pieces = ceil_div(columns, piece);
    if (pieces == 1) {
#pragma omp parallel for schedule(static) firstprivate(local) if (rows * columns > 4096)
      for (int64_t row = 0; row < rows; ++row) {
#pragma omp simd
        for (int64_t column = 0; column < columns; ++column) local(row, column);
      }
      return;
    }
#pragma omp parallel for schedule(static) firstprivate(local)
    for (int64_t task = 0; task < rows * pieces; ++task) {
      const int64_t row = task / pieces, begin = task % pieces * piece;
      const int64_t end = std::min(columns, begin + piece);
#pragma omp simd
      for (int64_t column = begin; column < end; ++column) local(row, column);
    }
  }
}

}  // namespace crema
