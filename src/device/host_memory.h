// How much main memory this process may still allocate.
#pragma once

#include <cstddef>

namespace crema {

// Free bytes from the operating system, including file caches, or less if a control group or a
// process limit is tighter. The largest number if nothing is known.
size_t free_host_memory();

}  // namespace crema
