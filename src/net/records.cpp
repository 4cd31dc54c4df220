#include "net/records.h"

namespace crema {

int64_t batch_of(const Net& net) {
  for (const Node& node : net.graph().nodes) {
    if (!node.bottoms.empty() || node.tops.empty() || !node.parameters.empty()) continue;
    const Shape& shape = net.graph().values[node.tops[0]].shape;
    if (shape.axes() > 0) return shape[0];
  }
  return 1;
}

int64_t records_of(const Net& net) {
  for (const Node& node : net.graph().nodes) {
    if (node.layer->records() > 0) return node.layer->records();
  }
  return 0;
}

}  // namespace crema
