// Single layers of a net that is made fully convolutional.
#pragma once

#include <string>
#include <vector>

#include "proto/layer.pb.h"
#include "tensor/shape.h"

namespace crema {

// An InnerProduct over a whole image, channels x height x width, as a Convolution. Error if no
// convolution computes the same. `axes`: the number of its bottom's axes.
LayerParameter as_convolution(const LayerParameter& layer, const Shape& image, int axes);

// The layer for maps of scores, samples x channels x height x width, instead of scores, samples x
// channels. Error if it does not work on each position by itself.
LayerParameter for_maps(const LayerParameter& layer);

// A matrix of `rows` rows by columns.
std::vector<float> transposed(const std::vector<float>& values, int64_t rows, int64_t columns);

}  // namespace crema
