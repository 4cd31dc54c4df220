#include <limits>

#include "solver/check.h"

namespace crema {

int64_t largest_batch_in(const MemoryKinds& kinds, int64_t batch, size_t available) {
  const size_t fixed = kinds.total() - kinds.blobs;
  const bool known = available != std::numeric_limits<size_t>::max();  // not on a CPU
  if (!known || fixed >= available || kinds.blobs == 0) return 0;
  return static_cast<int64_t>(static_cast<double>(available - fixed) * static_cast<double>(batch) /
                              static_cast<double>(kinds.blobs));
}

}  // namespace crema
