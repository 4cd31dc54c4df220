// How much main memory this process may still take.
#pragma once

#include <cstddef>

namespace crema {

// Bytes that the operating system has left for it, caches of files included, or less where a control
// group or a limit of the process is tighter. The largest number where nothing says.
size_t free_host_memory();

}  // namespace crema
