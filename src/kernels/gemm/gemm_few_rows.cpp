// gemm for few rows of a and a large transposed b (a fully connected layer with a small batch).
// Such a product is bound by reading b, so b is read once, in order and in place: each element of c
// is a dot product of two rows.
#include <algorithm>
#include <memory>

#include "base/ceil_div.h"
#include "kernels/core/threads.h"
#include "kernels/gemm/gemm_kernels.h"

namespace crema {
namespace {

// Register tile: kTile rows of a by kTile rows of b, as many accumulators as the register file
// holds.
#if defined(__AVX512F__)
constexpr int kRowVectorBytes = 64, kTile = 4;
#elif defined(__aarch64__)  // NEON
constexpr int kRowVectorBytes = 16, kTile = 4;
#else
constexpr int kRowVectorBytes = 32, kTile = 3;
#endif
constexpr int64_t kMaxRows = 32;
constexpr int64_t kBytes = 2048;  // of a piece of a row: the pieces of a and b stay in the L1 cache

template <typename T>
struct Vector {
  using Type __attribute__((vector_size(kRowVectorBytes))) = T;
  // The same without alignment.
  using Anywhere __attribute__((vector_size(kRowVectorBytes), aligned(alignof(T)), may_alias)) = T;
  static constexpr int64_t width = kRowVectorBytes / sizeof(T);
};

// sums[i][j] += a[i] * b[j] lane by lane, over `count` elements.
template <typename T>
[[gnu::noinline]] void dot_tile(const T* const* a, const T* const* b, int64_t count,
                                typename Vector<T>::Type* sums) {
  using V = typename Vector<T>::Type;
  using Anywhere = typename Vector<T>::Anywhere;
  constexpr int64_t width = Vector<T>::width;
  V sum[kTile][kTile];
  std::copy(sums, sums + kTile * kTile, &sum[0][0]);
  int64_t k = 0;
  for (; k + width <= count; k += width) {
    V x[kTile];
#pragma GCC unroll 4
    for (int i = 0; i < kTile; ++i) x[i] = *reinterpret_cast<const Anywhere*>(a[i] + k);
#pragma GCC unroll 4
    for (int j = 0; j < kTile; ++j) {
      const V y = *reinterpret_cast<const Anywhere*>(b[j] + k);
#pragma GCC unroll 4
      for (int i = 0; i < kTile; ++i) sum[i][j] += x[i] * y;
    }
  }
  std::copy(&sum[0][0], &sum[0][0] + kTile * kTile, sums);
  for (; k < count; ++k) {
    for (int i = 0; i < kTile; ++i) {
      for (int j = 0; j < kTile; ++j) sums[i * kTile + j][0] += a[i][k] * b[j][k];
    }
  }
}

// Packs a in pieces of its rows, those of the same columns together: rows a multiple of 4096 bytes
// apart would evict each other from the cache.
template <typename T>
std::unique_ptr<T[]> cut(const Gemm& g, const T* a, int64_t piece) {
  const int64_t pieces = ceil_div(g.k, piece);
  std::unique_ptr<T[]> packed(new T[pieces * g.m * piece]);
  for (int64_t k = 0; k < g.k; k += piece) {
    for (int64_t row = 0; row < g.m; ++row) {
      const T* from = a + row * g.lda + k;
      std::copy(from, from + std::min(piece, g.k - k), packed.get() + k * g.m + row * piece);
    }
  }
  return packed;
}

// Computes c for all rows and the columns [first, first + columns), columns at most kTile; a is
// packed by cut().
template <typename T>
void few_columns(const Gemm& g, const T* a, const T* b, int64_t piece, int64_t first,
                 int64_t columns, T* c) {
  typename Vector<T>::Type sums[(kMaxRows + kTile) * kTile] = {};
  for (int64_t k = 0; k < g.k; k += piece) {
    const int64_t count = std::min(piece, g.k - k);
    const T* y[kTile];
    for (int64_t j = 0; j < kTile; ++j) {
      y[j] = b + (first + std::min(j, columns - 1)) * g.ldb + k;
    }
    for (int64_t row = 0; row < g.m; row += kTile) {
      const T* x[kTile];
      for (int64_t i = 0; i < kTile; ++i) x[i] = a + k * g.m + std::min(row + i, g.m - 1) * piece;
      dot_tile(x, y, count, sums + row * kTile);
    }
  }
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      T& out = c[i * g.ldc + first + j];
      T value = 0;
      for (int64_t lane = 0; lane < Vector<T>::width; ++lane) value += sums[i * kTile + j][lane];
      value *= static_cast<T>(g.alpha);
      out = g.beta == 0 ? value : value + static_cast<T>(g.beta) * out;
    }
  }
}

template <typename T>
Refusal gemm_few_rows(Context&, const Gemm& g, const T* a, const T* b, T* c) {
  if (g.transpose_a || !g.transpose_b || g.batch != 1 || g.m > kMaxRows || g.n < 8 || g.k < 64)
    return "for few rows of a and a large transposed b";
  const int64_t tiles = ceil_div(g.n, kTile), piece = kBytes / sizeof(T);
  const std::unique_ptr<T[]> packed = cut(g, a, piece);
#pragma omp parallel for schedule(static) if (threads_here() > 1 && g.m * g.n * g.k > 32 * 32 * 32)
  for (int64_t tile = 0; tile < tiles; ++tile) {
    few_columns(g, packed.get(), b, piece, tile * kTile,
                std::min<int64_t>(kTile, g.n - tile * kTile), c);
  }
  return nullptr;
}

REGISTER_KERNEL(gemm_kernels<float>, "few_rows", RunsOn::cpu, 20, gemm_few_rows<float>);
REGISTER_KERNEL(gemm_kernels<double>, "few_rows", RunsOn::cpu, 20, gemm_few_rows<double>);

}  // namespace

}  // namespace crema
