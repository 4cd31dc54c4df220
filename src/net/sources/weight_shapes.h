// What the weights of a net reveal about its input: the first convolution has its channels, the
// first fully connected layer its size.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "proto/net.pb.h"
#include "tensor/shape.h"

namespace crema {

// The shapes of the first blobs of layers, by their names.
using WeightShapes = std::map<std::string, Shape>;

// The shapes of the blobs of a net with this input, by name; none when a layer cannot take it.
using ShapesWithInput =
    std::function<std::optional<std::map<std::string, Shape>>(const NetParameter& net)>;

// `shape` of samples x channels x height x width, corrected: `layers` are those that lead from the
// input `top` on. If `sized` is false, the size is searched among squares. Of several that give the
// same number of values it is that of `shape`, then 224, then the one that can be halved most
// often.
Shape shape_by_weights(const std::string& top, const Shape& shape, bool sized,
                       const NetParameter& layers, const WeightShapes& weights,
                       const ShapesWithInput& shapes);

}  // namespace crema
