// The inputs of a deploy net, which replace its data sources.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "net/deploy/deploy.h"
#include "net/deploy/deploy_graph.h"
#include "net/sources/assumed_shapes.h"
#include "tensor/shape.h"

namespace crema {

// The batch size, and that of the training net: as many as it had labels.
struct DeployBatch {
  int samples = 0;           // 0: what sources say
  std::set<int64_t> before;  // in training
  bool replaces(int64_t extent) const { return samples > 0 && before.count(extent) > 0; }
};
DeployBatch batch_of(const DeployGraph& graph, const DeployOptions& options);
// For a DummyData layer that stays.
void set_batch(const DeployBatch& batch, LayerParameter* made_up);

struct DeployInput {
  int source = -1;  // layer
  int blob = -1;    // its top, or the top of a Slice that reads nothing else
  int slice = -1;   // that Slice, which the input replaces
  Shape shape;
};

// One for each top of a source that a layer of `needed` reads. Error, for all at once, if shapes
// are unknown, and for a name in `options.assume` that is not a top of a source.
std::vector<DeployInput> find_inputs(const DeployGraph& graph, const std::vector<bool>& needed,
                                     const DeployOptions& options);

}  // namespace crema
