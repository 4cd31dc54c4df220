// Transposes matrices on the CPU, tile by tile, so that both sides stay in the L1 cache.
#include <algorithm>
#include <cstdint>

#include "base/ceil_div.h"
#include "base/error.h"
#include "kernels/core/threads.h"
#include "kernels/move/reorder_kernels.h"

namespace crema {
namespace {

constexpr int64_t kTileRows = 16, kTileColumns = 512;

// Writes the destination's rows in order; `rows`, if known at compile time, lets the inner loop
// unroll.
template <typename T, int64_t rows_known>
void tile(const T* from, T* to, int64_t rows, int64_t columns, int64_t from_row, int64_t to_row) {
  const int64_t count = rows_known > 0 ? rows_known : rows;
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < count; ++i) to[j * to_row + i] = from[i * from_row + j];
  }
}

template <typename T>
void transpose_elements(const T* from, T* to, int64_t count, int64_t rows, int64_t columns) {
  const int64_t row_tiles = ceil_div(rows, kTileRows),
                column_tiles = ceil_div(columns, kTileColumns);
  const int64_t tiles = count * column_tiles;
#pragma omp parallel for schedule(static) if (threads_here() > 1 && count * rows * columns > 16384)
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t matrix = t / column_tiles, j = t % column_tiles * kTileColumns;
    const int64_t wide = std::min(kTileColumns, columns - j);
    for (int64_t tile_row = 0; tile_row < row_tiles; ++tile_row) {
      const int64_t i = tile_row * kTileRows, high = std::min(kTileRows, rows - i);
      const T* source = from + (matrix * rows + i) * columns + j;
      T* destination = to + (matrix * columns + j) * rows + i;
      switch (high) {
        case kTileRows:
          tile<T, kTileRows>(source, destination, high, wide, columns, rows);
          break;
        case 3:
          tile<T, 3>(source, destination, high, wide, columns, rows);
          break;
        default:
          tile<T, 0>(source, destination, high, wide, columns, rows);
      }
    }
  }
}

}  // namespace

void transpose(const void* from, void* to, int64_t count, int64_t rows, int64_t columns,
               size_t size) {
  switch (size) {
    case 1:
      return transpose_elements(static_cast<const uint8_t*>(from), static_cast<uint8_t*>(to), count,
                                rows, columns);
    case 4:
      return transpose_elements(static_cast<const uint32_t*>(from), static_cast<uint32_t*>(to),
                                count, rows, columns);
    case 8:
      return transpose_elements(static_cast<const uint64_t*>(from), static_cast<uint64_t*>(to),
                                count, rows, columns);
    default:
      fail("elements of ", size, " bytes cannot be reordered");
  }
}

}  // namespace crema
