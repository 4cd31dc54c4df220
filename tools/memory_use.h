// This process's memory, as the operating system counts it.
#pragma once

#include <cstddef>

namespace crema {

// Bytes by which the peak resident set exceeds the one at the program's start, when the libraries
// were loaded.
size_t growth_of_resident_set();

// Bytes in memory now; 0 where the system does not say.
size_t resident_set();

// Bytes of main memory that trainings may take: four fifths of what the system has left, or of less
// where a control group or a limit of the process is tighter. Other programs need some, too.
size_t available_memory();

}  // namespace crema
