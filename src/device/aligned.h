// Alignment of the parts of a shared allocation.
#pragma once

#include <cstddef>

namespace crema {

// CUDA aligns its own allocations to 256 bytes, enough for every vector load.
inline size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace crema
