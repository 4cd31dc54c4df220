// The reference gemm of the GPU: one thread per element of c.
#include "device/parallel.h"
#include "kernels/gemm/gemm_kernels.h"

namespace crema {
namespace {

template <typename T>
struct GemmElement {
  Gemm g;
  const T* a;
  const T* b;
  T* c;

  CREMA_HD void operator()(int64_t i) const {
    const int64_t column = i % g.n, row = i / g.n % g.m, batch = i / g.n / g.m;
    const T* x = a + batch * g.batch_stride_a + (g.transpose_a ? row : row * g.lda);
    const T* y = b + batch * g.batch_stride_b + (g.transpose_b ? column * g.ldb : column);
    const int64_t step_x = g.transpose_a ? g.lda : 1, step_y = g.transpose_b ? 1 : g.ldb;
    T sum = 0;
    for (int64_t k = 0; k < g.k; ++k) sum += x[k * step_x] * y[k * step_y];
    T& out = c[batch * g.batch_stride_c + row * g.ldc + column];
    out = static_cast<T>(g.alpha) * sum + (g.beta == 0 ? T(0) : static_cast<T>(g.beta) * out);
  }
};

template <typename T>
Refusal gemm_elements(Context& context, const Gemm& g, const T* a, const T* b, T* c) {
  parallel_for(context, g.batch * g.m * g.n, GemmElement<T>{g, a, b, c}, 1);
  return nullptr;
}

REGISTER_KERNEL(gemm_kernels<float>, "plain", RunsOn::gpu, 0, gemm_elements<float>);
REGISTER_KERNEL(gemm_kernels<double>, "plain", RunsOn::gpu, 0, gemm_elements<double>);

}  // namespace

}  // namespace crema
