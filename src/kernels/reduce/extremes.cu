#include "kernels/reduce/extremes.h"

#include <algorithm>
#include <type_traits>

#include "base/ceil_div.h"
#include "device/parallel.h"
#include "tensor/on.h"
#include "tensor/part.h"

namespace crema {
namespace {

// The values that a piece of a row has at least: few on a GPU, whose threads have a piece each.
constexpr int64_t kFewest = 64, kFewestOnCpu = 4096;
constexpr int64_t kMost = 64 << 10;  // pieces of a row: threads that keep a GPU busy

// A row of more than one piece becomes a row of its pieces' extremes, until one piece is left.
int64_t pieces_of(int64_t size, int64_t fewest = kFewest) {
  return std::clamp<int64_t>(ceil_div(size, fewest), 1, kMost);
}

#ifndef __CUDA_ARCH__
// The same extremes by vectors, of values that are neighbors. Returns how many of them it has seen.
template <typename T, typename C>
int64_t extremes_by_lanes(const T* lows, const T* highs, int64_t count, C* low, C* high) {
  constexpr int64_t kLanes = 32;
  C least[kLanes] = {}, most[kLanes] = {};
  int64_t seen = 0;
  for (; seen + kLanes <= count; seen += kLanes) {
#pragma omp simd
    for (int64_t k = 0; k < kLanes; ++k) {
      const C a = lows[seen + k], b = highs[seen + k];
      least[k] = a < least[k] ? a : least[k];
      most[k] = b > most[k] ? b : most[k];
    }
  }
  for (int64_t k = 0; k < kLanes; ++k) {
    *low = least[k] < *low ? least[k] : *low;
    *high = most[k] > *high ? most[k] : *high;
  }
  return seen;
}
#endif

// Entry i: the extremes of piece i % pieces of row i / pieces.
template <typename T, typename C>
struct PieceExtremes {
  const T *lows, *highs;  // rows of `size`
  int64_t size, pieces;
  bool strided;  // a piece has every pieces-th value, so that a GPU's threads read neighbors
  C *lowest, *highest;
  CREMA_HD void operator()(int64_t i) const {
    const int64_t row = i / pieces * size, piece = i % pieces;
    int64_t first = strided ? piece : piece * size / pieces;
    const int64_t end = strided ? size : (piece + 1) * size / pieces, step = strided ? pieces : 1;
    C low = 0, high = 0;
#ifndef __CUDA_ARCH__
    if (step == 1)
      first += extremes_by_lanes(lows + row + first, highs + row + first, end - first, &low, &high);
#endif
    for (int64_t j = first; j < end; j += step) {
      const C a = lows[row + j], b = highs[row + j];
      low = a < low ? a : low;
      high = b > high ? b : high;
    }
    lowest[i] = low;
    highest[i] = high;
  }
};

}  // namespace

size_t extremes_workspace(int64_t rows, int64_t size) {
  int64_t values = 0;
  for (int64_t pieces = pieces_of(size); pieces > 1; pieces = pieces_of(pieces)) values += pieces;
  return static_cast<size_t>(2 * rows * values) * sizeof(double);
}

void extremes(Context& context, const Tensor& x, int64_t rows, const Tensor& lowest,
              const Tensor& highest, const Tensor& workspace) {
  if (rows == 0) return;
  on_real(x, [&]<typename T>() {
    using C = Compute<T>;
    const bool strided = context.device() == Device::gpu;
    C* memory = reinterpret_cast<C*>(workspace.raw());
    const auto reduce = [&](const auto* lows, const auto* highs, int64_t size, int64_t pieces,
                            C* low, C* high) {
      using V = std::remove_cvref_t<decltype(*lows)>;
      parallel_for(context, rows * pieces,
                   PieceExtremes<V, C>{lows, highs, size, pieces, strided, low, high},
                   ceil_div<int64_t>(4096, std::max<int64_t>(size, 1)));
    };
    const int64_t fewest = strided ? kFewest : kFewestOnCpu;
    int64_t size = x.elements() / rows, pieces = pieces_of(size, fewest);
    const C *lows = nullptr, *highs = nullptr;
    while (true) {
      C* const low = pieces > 1 ? memory : lowest.data<C>();
      C* const high = pieces > 1 ? memory + rows * pieces : highest.data<C>();
      if (lows) {
        reduce(lows, highs, size, pieces, low, high);
      } else {
        reduce(x.data<T>(), x.data<T>(), size, pieces, low, high);
      }
      if (pieces == 1) return;
      memory += 2 * rows * pieces;
      lows = low;
      highs = high;
      size = pieces;
      pieces = pieces_of(size, fewest);
    }
  });
}

}  // namespace crema
