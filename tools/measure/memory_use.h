// This process's memory, as the operating system counts it.
#pragma once

#include <cstddef>

namespace crema {

// Bytes by which the peak resident set exceeds the one at the program's start, when the libraries
// were loaded.
size_t growth_of_resident_set();
// Forgets that peak, so that the next one counts from what is in memory now. Where the system does not
// allow it, the peak remains.
void forget_peak();

// Bytes in memory now; 0 if the system does not report it.
size_t resident_set();

// Bytes of main memory that runs may use: four fifths of the free memory, or of less if a control
// group or a process limit is tighter. Other programs need some, too.
size_t available_memory();

}  // namespace crema
