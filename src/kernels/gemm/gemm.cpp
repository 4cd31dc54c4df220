// gemm(), and its reference on the CPU. Blocks of op(a) and op(b) are packed into panels, so that the
// innermost loop reads both in order and keeps a tile of c in registers (Goto and van de Geijn).
// Each thread computes a band of rows or of columns.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/ceil_div.h"
#include "kernels/core/threads.h"
#include "kernels/gemm/gemm_kernels.h"

namespace crema {
namespace {

// As many accumulators as the register file holds besides two vectors of b.
#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kTileRows = 12;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32, kTileRows = 6;
#elif defined(__aarch64__)  // NEON
constexpr int kVectorBytes = 16, kTileRows = 8;
#else
constexpr int kVectorBytes = 16, kTileRows = 6;
#endif
constexpr int64_t kDepth = 256;        // of a block along k: a panel of b stays in the L1 cache
constexpr int64_t kBlockRows = 192;    // of a packed block of a: stays in the L2 cache
constexpr int64_t kBlockBytes = 4096;  // of a row of a packed block of b

template <typename T>
struct Tile {
  using Vector __attribute__((vector_size(kVectorBytes))) = T;
  // The same without alignment.
  using Anywhere __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias)) = T;
  static constexpr int64_t width = kVectorBytes / sizeof(T);
  static constexpr int64_t rows = kTileRows;
  static constexpr int64_t columns = 2 * width;
};

// Packs panels of `lanes` rows as to[k][lane]: element (row, k) of the matrix is from[row *
// step_row + k * step_k]. Lanes beyond `rows` are zero.
template <typename T, int64_t lanes>
void pack(const T* from, int64_t step_row, int64_t step_k, int64_t rows, int64_t depth, T* to) {
  for (int64_t first = 0; first < rows; first += lanes, to += lanes * depth) {
    const int64_t here = std::min(lanes, rows - first);
    const T* source = from + first * step_row;
    if (here < lanes) std::memset(to, 0, sizeof(T) * lanes * depth);
    if (here == lanes && step_row == 1) {
      for (int64_t k = 0; k < depth; ++k)
        std::memcpy(to + k * lanes, source + k * step_k, sizeof(T) * lanes);
    } else {
      constexpr int64_t block = 16;  // of k: the written part stays in the L1 cache
      for (int64_t k = 0; k < depth; k += block) {
        const int64_t end = std::min(depth, k + block);
        for (int64_t lane = 0; lane < here; ++lane) {
          for (int64_t p = k; p < end; ++p)
            to[p * lanes + lane] = source[lane * step_row + p * step_k];
        }
      }
    }
  }
}

// tile = panel of a times panel of b. Not inlined, so that the caller's values occupy no registers.
template <typename T>
[[gnu::noinline]] void multiply_panels(int64_t depth, const T* a, const T* b, T* tile) {
  using Vector = typename Tile<T>::Vector;
  constexpr int64_t width = Tile<T>::width;
  Vector sum[kTileRows][2] = {};
  for (int64_t k = 0; k < depth; ++k, a += kTileRows, b += 2 * width) {
    const Vector left = *reinterpret_cast<const typename Tile<T>::Anywhere*>(b);
    const Vector right = *reinterpret_cast<const typename Tile<T>::Anywhere*>(b + width);
#pragma GCC unroll 12
    for (int row = 0; row < kTileRows; ++row) {
      sum[row][0] += a[row] * left;
      sum[row][1] += a[row] * right;
    }
  }
  std::memcpy(tile, sum, sizeof(sum));
}

// One thread's share of gemm: c is m x n, its pointers are already offset.
template <typename T>
class Band {
 public:
  Band(const Gemm& g, int64_t m, int64_t n)
      : g_(g),
        m_(m),
        n_(n),
        block_columns_(kBlockBytes / sizeof(T)),
        depth_(std::min(kDepth, g.k)) {
    const int64_t rows = (std::min(kBlockRows, m) + kTileRows - 1) / kTileRows * kTileRows;
    const int64_t columns = (std::min(block_columns_, n) + kColumns - 1) / kColumns * kColumns;
    packed_a_.reset(new T[rows * depth_]);
    packed_b_.reset(new T[columns * depth_]);
  }

  void run(const T* a, const T* b, T* c) {
    const int64_t a_row = g_.transpose_a ? 1 : g_.lda, a_k = g_.transpose_a ? g_.lda : 1;
    const int64_t b_column = g_.transpose_b ? g_.ldb : 1, b_k = g_.transpose_b ? 1 : g_.ldb;
    if (g_.k == 0) return scale(c);
    for (int64_t column = 0; column < n_; column += block_columns_) {
      const int64_t columns = std::min(block_columns_, n_ - column);
      for (int64_t k = 0; k < g_.k; k += depth_) {
        const int64_t depth = std::min(depth_, g_.k - k);
        pack<T, kColumns>(b + column * b_column + k * b_k, b_column, b_k, columns, depth,
                          packed_b_.get());
        for (int64_t row = 0; row < m_; row += kBlockRows) {
          const int64_t rows = std::min(kBlockRows, m_ - row);
          pack<T, kTileRows>(a + row * a_row + k * a_k, a_row, a_k, rows, depth, packed_a_.get());
          block(rows, columns, depth, k == 0 ? static_cast<T>(g_.beta) : T(1),
                c + row * g_.ldc + column);
        }
      }
    }
  }

 private:
  static constexpr int64_t kColumns = Tile<T>::columns;

  void block(int64_t rows, int64_t columns, int64_t depth, T beta, T* c) {
    alignas(64) T tile[kTileRows * kColumns];
    const T alpha = static_cast<T>(g_.alpha);
    for (int64_t j = 0; j < columns; j += kColumns) {
      for (int64_t i = 0; i < rows; i += kTileRows) {
        multiply_panels(depth, packed_a_.get() + i * depth, packed_b_.get() + j * depth, tile);
        const int64_t wide = std::min(kColumns, columns - j),
                      high = std::min<int64_t>(kTileRows, rows - i);
        for (int64_t y = 0; y < high; ++y) {
          T* out = c + (i + y) * g_.ldc + j;
          const T* from = tile + y * kColumns;
          if (beta == 0) {
            for (int64_t x = 0; x < wide; ++x) out[x] = alpha * from[x];
          } else {
            for (int64_t x = 0; x < wide; ++x) out[x] = alpha * from[x] + beta * out[x];
          }
        }
      }
    }
  }

  void scale(T* c) const {
    for (int64_t i = 0; i < m_; ++i) {
      for (int64_t j = 0; j < n_; ++j) {
        T& out = c[i * g_.ldc + j];
        out = g_.beta == 0 ? T(0) : static_cast<T>(g_.beta) * out;
      }
    }
  }

  const Gemm& g_;
  int64_t m_, n_, block_columns_, depth_;
  std::unique_ptr<T[]> packed_a_, packed_b_;
};

template <typename T>
Refusal gemm_reference(Context&, const Gemm& g, const T* a, const T* b, T* c) {
  const bool by_columns = g.n >= g.m;
  const int64_t unit = by_columns ? Tile<T>::columns : kTileRows, extent = by_columns ? g.n : g.m;
  const int64_t tiles = ceil_div(extent, unit);
  const bool small = g.m * g.n * g.k * g.batch < 32 * 32 * 32;
  const int64_t bands = small ? 1 : std::min<int64_t>(threads_here(), tiles);
  const auto compute = [&](int64_t band) {
    const int64_t from = tiles * band / bands * unit,
                  to = std::min(extent, tiles * (band + 1) / bands * unit);
    const int64_t m = by_columns ? g.m : to - from, n = by_columns ? to - from : g.n;
    Band<T> work(g, m, n);
    for (int64_t i = 0; i < g.batch; ++i) {
      const T* x = a + i * g.batch_stride_a;
      const T* y = b + i * g.batch_stride_b;
      T* z = c + i * g.batch_stride_c;
      if (by_columns) {
        work.run(x, y + from * (g.transpose_b ? g.ldb : 1), z + from);
      } else {
        work.run(x + from * (g.transpose_a ? 1 : g.lda), y, z + from * g.ldc);
      }
    }
  };
  RegionError error;
#pragma omp parallel for schedule(static) num_threads(static_cast <int>(bands)) if (bands > 1)
  for (int64_t band = 0; band < bands; ++band) {
    error.run([&] { compute(band); });
  }
  error.rethrow();
  return nullptr;
}

REGISTER_KERNEL(gemm_kernels<float>, "plain", RunsOn::cpu, 0, gemm_reference<float>);
REGISTER_KERNEL(gemm_kernels<double>, "plain", RunsOn::cpu, 0, gemm_reference<double>);

}  // namespace

template <typename T>
void gemm(Context& context, const Gemm& asked, const T* a, const T* b, T* c) {
  const Gemm g = with_leading_dimensions(asked);
  if (g.m > 0 && g.n > 0 && g.batch > 0) gemm_kernels<T>.run(context, g, a, b, c);
}

template void gemm<float>(Context&, const Gemm&, const float*, const float*, float*);
template void gemm<double>(Context&, const Gemm&, const double*, const double*, double*);

}  // namespace crema
