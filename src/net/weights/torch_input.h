// Folds PyTorch's transforms of pixels into the first convolution, if the data layer here does
// something else, and takes them out again.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "net/weights/torch_weights.h"

namespace crema {

// Indices in net.graph().net of the layers with parameters that read the blob.
std::set<int> layers_reading(const Net& net, const std::string& blob);

// Rewrites a convolution for (x / 255 - mean) / std of R, G, B so that it computes the same from (x
// - mean) * scale of B, G, R. A difference of the means goes into the bias. Returns what was done;
// Error if the layer is not a convolution of three channels, or lacks a required bias.
std::string fold_input(const LayerParameter& layer, const Shape& shape, const WeightNames& names,
                       const TorchInput& input, std::vector<float>* weight,
                       std::vector<float>* bias);
// The inverse.
std::string unfold_input(const LayerParameter& layer, const Shape& shape, const WeightNames& names,
                         const TorchInput& input, std::vector<float>* weight,
                         std::vector<float>* bias);

}  // namespace crema
