// This process's memory, as the operating system counts it.
#pragma once

#include <cstddef>

namespace crema {

// Bytes by which the peak resident set exceeds the one at the program's start, when the libraries
// were loaded.
size_t growth_of_resident_set();

}  // namespace crema
