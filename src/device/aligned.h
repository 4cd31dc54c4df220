// Where the next thing may begin in memory that several things share.
#pragma once

#include <cstddef>

namespace crema {

// CUDA's own allocations begin at multiples of 256 bytes, which serve every vector load.
inline size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace crema
