#include "net/plan/arena.h"

#include <numeric>

#include "device/aligned.h"

namespace crema {

size_t assign_offsets(std::vector<Lifetime>& pieces) {
  std::vector<size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return pieces[a].bytes > pieces[b].bytes; });
  size_t total = 0;
  std::vector<size_t> placed;  // sorted by offset
  for (size_t i : order) {
    Lifetime& piece = pieces[i];
    if (piece.bytes == 0) continue;
    const size_t size = aligned(piece.bytes);
    size_t at = 0;
    for (size_t other : placed) {
      const Lifetime& taken = pieces[other];
      if (taken.last < piece.first || piece.last < taken.first) continue;
      if (at + size <= taken.offset) break;
      at = std::max(at, taken.offset + aligned(taken.bytes));
    }
    piece.offset = at;
    total = std::max(total, at + size);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i,
                         [&](size_t a, size_t b) { return pieces[a].offset < pieces[b].offset; }),
        i);
  }
  return total;
}

}  // namespace crema
