// The inputs of a net when it is used, in place of its sources of data.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "net/assumed_shapes.h"
#include "net/deploy.h"
#include "net/deploy_graph.h"
#include "tensor/shape.h"

namespace crema {

// How many samples the net takes at a time, and how many it took: as many as it had labels.
struct DeployBatch {
  int samples = 0;           // 0: what sources say
  std::set<int64_t> before;  // in training
  bool replaces(int64_t extent) const { return samples > 0 && before.count(extent) > 0; }
};
DeployBatch batch_of(const DeployGraph& graph, const DeployOptions& options);
// Of a DummyData layer that stays.
void set_batch(const DeployBatch& batch, LayerParameter* made_up);

struct DeployInput {
  int source = -1;  // layer
  int blob = -1;    // its top, or the top of a Slice that reads nothing else
  int slice = -1;   // that Slice, which the input replaces
  Shape shape;
};

// One for each top of a source that a layer of `needed` reads. Error, for all at once, when shapes
// cannot be known, and for a name in `options.assume` that is no top of a source.
std::vector<DeployInput> find_inputs(const DeployGraph& graph, const std::vector<bool>& needed,
                                     const DeployOptions& options);

}  // namespace crema
