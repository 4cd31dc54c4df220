// Random boxes for net inputs that are read as boxes.
#pragma once

#include <vector>

#include "net/net.h"

namespace crema {

// If `value` of the graph is read as RoIs (by ROIPooling or similar layers) or as objects
// (MultiBoxLoss, DetectionEvaluate, ProposalTarget, DetectNetTransformation): rows of random boxes
// inside the images, of classes other than the background. Otherwise empty.
std::vector<float> random_boxes(const Graph& graph, int value, const Random& random);

}  // namespace crema
