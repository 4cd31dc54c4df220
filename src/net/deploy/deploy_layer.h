// Single layers of a net that is made ready for use.
#pragma once

#include <string>

#include "proto/layer.pb.h"

namespace crema {

// Without what only training reads: fillers, rates of parameters, loss weights, rules.
LayerParameter without_training(const LayerParameter& layer);

// The fully connected layer that computes the hidden units of an RBM; BINARY ones need a Sigmoid
// after it.
LayerParameter hidden_units(const LayerParameter& rbm);

// A layer of this type, "Softmax" or "Sigmoid", along the axis of the loss; without name and blobs.
LayerParameter activation_layer(const LayerParameter& loss, const std::string& type);

}  // namespace crema
