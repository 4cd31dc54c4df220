// The number of samples in a batch, in whatever field a source states it.
#pragma once

#include <set>
#include <string>

#include "proto/layer.pb.h"
#include "proto/net.pb.h"

namespace crema {

// Whether the layer feeds a net: it has tops, no bottoms, and is not a parameter.
bool is_source(const LayerParameter& layer);

// Replaces the source's batch size. Error if it has none.
void set_batch_size(LayerParameter& source, int samples);

// The batch sizes of a source; none if it has none.
std::set<int64_t> stated_batches(const LayerParameter& source);

// The samples that several ranks divide among themselves: the batch of the first source other than
// DummyData, otherwise of the first top of a DummyData. 0: that source gives each rank its own
// batch.
int64_t divided_batch(const NetParameter& net);

// Replaces the batch size in layers other than sources that repeat it: the images of
// ProposalTarget, the sequences of Lstm and ContinuationIndicator, the first axis of Reshape, if
// they are one of `before`.
void follow_batch_size(LayerParameter& layer, const std::set<int64_t>& before, int samples);

// A type and its field of LayerParameter have the same letters: "inner_product_param" and
// "InnerProduct" both become "innerproduct".
std::string letters_of(std::string name);

}  // namespace crema
