// Single layers of a net that is made ready for use.
#pragma once

#include <string>

#include "proto/layer.pb.h"

namespace crema {

// Without what only training reads: fillers, rates of parameters, loss weights, rules.
LayerParameter without_training(const LayerParameter& layer);

// A layer of this type, "Softmax" or "Sigmoid", along the axis of the loss; without name and blobs.
LayerParameter activation_layer(const LayerParameter& loss, const std::string& type);

}  // namespace crema
