#include "kernels/reduce/extremes.h"

#include <algorithm>

#include "base/ceil_div.h"
#include "device/parallel.h"
#include "tensor/on.h"
#include "tensor/part.h"

namespace crema {
namespace {

constexpr int64_t kFewest = 64;  // values that a piece of a row has at least
constexpr int64_t kMost = 1024;  // pieces of a row

int64_t pieces_of(int64_t size) { return std::clamp<int64_t>(ceil_div(size, kFewest), 1, kMost); }

// Entry i: the extremes of piece i % pieces of row i / pieces.
template <typename T, typename C>
struct PieceExtremes {
  const T *lows, *highs;  // rows of `size`
  int64_t size, pieces;
  bool strided;  // a piece has every pieces-th value, so that a GPU's threads read neighbors
  C *lowest, *highest;
  CREMA_HD void operator()(int64_t i) const {
    const int64_t row = i / pieces * size, piece = i % pieces;
    const int64_t first = strided ? piece : piece * size / pieces,
                  end = strided ? size : (piece + 1) * size / pieces, step = strided ? pieces : 1;
    C low = 0, high = 0;
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
  const int64_t pieces = pieces_of(size);
  return static_cast<size_t>(2 * rows * (pieces + pieces_of(pieces))) * sizeof(double);
}

void extremes(Context& context, const Tensor& x, int64_t rows, const Tensor& lowest,
              const Tensor& highest, const Tensor& workspace) {
  if (rows == 0) return;
  on_real(x, [&]<typename T>() {
    using C = Compute<T>;
    const bool strided = context.device() == Device::gpu;
    const int64_t size = x.elements() / rows, first = pieces_of(size), second = pieces_of(first);
    C* const memory = reinterpret_cast<C*>(workspace.raw());
    C *const low1 = memory, *const high1 = low1 + rows * first, *const low2 = high1 + rows * first,
             *const high2 = low2 + rows * second;
    parallel_for(context, rows * first,
                 PieceExtremes<T, C>{x.data<T>(), x.data<T>(), size, first, strided, low1, high1},
                 1);
    parallel_for(context, rows * second,
                 PieceExtremes<C, C>{low1, high1, first, second, strided, low2, high2});
    parallel_for(
        context, rows,
        PieceExtremes<C, C>{low2, high2, second, 1, strided, lowest.data<C>(), highest.data<C>()});
  });
}

}  // namespace crema
