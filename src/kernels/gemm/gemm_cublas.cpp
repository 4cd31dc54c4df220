// gemm by cuBLAS. cuBLAS is column-major, which is our row-major transposed: it computes c' = b' *
// a'.
#include "kernels/gemm/gemm_cublas.h"

#include <type_traits>

#include "device/gpu.h"
#include "kernels/gemm/gemm_kernels.h"
#include "tensor/half.h"

namespace crema {
namespace {

template <typename T>
constexpr cudaDataType_t kCudaType = std::is_same_v<T, Half>       ? CUDA_R_16F
                                     : std::is_same_v<T, BFloat16> ? CUDA_R_16BF
                                     : std::is_same_v<T, double>   ? CUDA_R_64F
                                                                   : CUDA_R_32F;

cublasOperation_t operation(bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; }

template <typename T>
cublasComputeType_t compute_type(const Gemm& g) {
  if (std::is_same_v<T, double>) return CUBLAS_COMPUTE_64F;
  return std::is_same_v<T, float> && g.precision != Precision::fp32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                    : CUBLAS_COMPUTE_32F;
}

}  // namespace

template <typename T, typename C>
void gemm_cublas(Context& context, const Gemm& g, const T* a, const T* b, C* c) {
  const auto alpha = static_cast<Compute<T>>(g.alpha), beta = static_cast<Compute<T>>(g.beta);
  check_cublas(cublasGemmStridedBatchedEx_64(
                   context.gpu().cublas(), operation(g.transpose_b), operation(g.transpose_a), g.n,
                   g.m, g.k, &alpha, b, kCudaType<T>, g.ldb, g.batch_stride_b, a, kCudaType<T>,
                   g.lda, g.batch_stride_a, &beta, c, kCudaType<C>, g.ldc, g.batch_stride_c,
                   g.batch, compute_type<T>(g), CUBLAS_GEMM_DEFAULT),
               "a matrix product");
}

template <typename T, typename C>
void gemm_pointers_cublas(Context& context, const Gemm& g, int64_t count, const T* const* a,
                          const T* const* b, C* const* c) {
  const auto alpha = static_cast<Compute<T>>(g.alpha), beta = static_cast<Compute<T>>(g.beta);
  check_cublas(cublasGemmBatchedEx_64(context.gpu().cublas(), operation(g.transpose_b),
                                      operation(g.transpose_a), g.n, g.m, g.k, &alpha,
                                      reinterpret_cast<const void* const*>(b), kCudaType<T>, g.ldb,
                                      reinterpret_cast<const void* const*>(a), kCudaType<T>, g.lda,
                                      &beta, reinterpret_cast<void* const*>(c), kCudaType<C>, g.ldc,
                                      count, compute_type<T>(g), CUBLAS_GEMM_DEFAULT),
               "products of matrices");
}

#define CREMA_GEMM(T, C)                                                                    \
  template void gemm_cublas<T, C>(Context&, const Gemm&, const T*, const T*, C*);           \
  template void gemm_pointers_cublas<T, C>(Context&, const Gemm&, int64_t, const T* const*, \
                                           const T* const*, C* const*);
CREMA_GEMM(float, float)
CREMA_GEMM(double, double)
CREMA_GEMM(Half, Half)
CREMA_GEMM(Half, float)
CREMA_GEMM(BFloat16, BFloat16)
CREMA_GEMM(BFloat16, float)
#undef CREMA_GEMM

namespace {

template <typename T>
Refusal gemm_by_cublas(Context& context, const Gemm& g, const T* a, const T* b, T* c) {
  if (g.k == 0) return "nothing to add up";
  gemm_cublas(context, g, a, b, c);
  return nullptr;
}

REGISTER_KERNEL(gemm_kernels<float>, "cublas", RunsOn::gpu, 30, gemm_by_cublas<float>);
REGISTER_KERNEL(gemm_kernels<double>, "cublas", RunsOn::gpu, 30, gemm_by_cublas<double>);

}  // namespace

}  // namespace crema
