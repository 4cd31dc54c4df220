// Memory of this process as the machine counts it.
#pragma once

#include <cstddef>

namespace crema {

// Bytes by which the largest resident set so far exceeds the one at the program's start, when the
// libraries were loaded.
size_t growth_of_resident_set();

}  // namespace crema
