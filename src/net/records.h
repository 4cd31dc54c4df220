// How many records a net reads per pass, and how many its data has.
#pragma once

#include "net/net.h"

namespace crema {

// Samples in one forward pass: the first extent of the first blob of a source or Input layer,
// otherwise 1.
int64_t batch_of(const Net& net);
// Records per epoch of the net's first source; 0 when it does not know.
int64_t records_of(const Net& net);
// The same; a source that must read through itself to know does so. 0: no source has epochs.
int64_t count_records(const Net& net);

// An epoch of a net with NetOptions::whole_epochs: passes n * batches to (n + 1) * batches - 1.
struct WholeEpoch {
  int64_t records = 0, batches = 0;
};
// Error naming the layers if a source has no epochs, if sources differ in records or batch_size, or
// if the last batch's size does not fit a layer. Makes the plans for both sizes.
WholeEpoch check_whole_epochs(Net& net);
// The number of records in the batch of a pass.
int64_t records_in(const Net& net, uint64_t pass);

}  // namespace crema
