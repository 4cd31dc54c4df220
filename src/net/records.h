// How many records a net reads per pass, and how many its data has.
#pragma once

#include "net/net.h"

namespace crema {

// Samples in one forward pass: the first extent of the first blob of a source or Input layer, else
// 1.
int64_t batch_of(const Net& net);
// Records per epoch of the net's first source; 0 when it does not know.
int64_t records_of(const Net& net);

}  // namespace crema
