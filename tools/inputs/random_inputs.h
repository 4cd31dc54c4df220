// Fills the net inputs that no source fills.
#pragma once

#include <string>
#include <vector>

#include "net/net.h"

namespace crema {

// Every top of an Input layer gets values from N(0, 1); one that is read as labels gets integers,
// uniform over the classes (0 or 1 for SigmoidCrossEntropyLoss), and one that is read as boxes gets
// boxes. Depends only on the context's seed and the blob's name.
void fill_random_inputs(Net& net);

// The inputs it fills, with shapes: "data 10x3x224x224".
std::vector<std::string> random_inputs_of(const Net& net);

// The number of classes when `value` of the graph is read as labels; 0 when it is not.
int64_t classes_of(const Graph& graph, int value);

}  // namespace crema
