// Random boxes for inputs of a net that are read as such.
#pragma once

#include <vector>

#include "net/net.h"

namespace crema {

// Where `value` of the graph is read as regions (ROIPooling and the like) or as objects
// (MultiBoxLoss, DetectionEvaluate, ProposalTarget, DetectNetTransformation): rows of random boxes
// within the images, of classes that are not the background. Elsewhere empty.
std::vector<float> random_boxes(const Graph& graph, int value, const Random& random);

}  // namespace crema
