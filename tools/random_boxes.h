// Random boxes for net inputs that are read as boxes.
#pragma once

#include <vector>

#include "net/net.h"

namespace crema {

// Where `value` of the graph is read as RoIs (ROIPooling and the like) or as objects (MultiBoxLoss,
// DetectionEvaluate, ProposalTarget, DetectNetTransformation): rows of random boxes inside the
// images, of classes other than the background. Otherwise empty.
std::vector<float> random_boxes(const Graph& graph, int value, const Random& random);

}  // namespace crema
