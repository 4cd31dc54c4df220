// Blobs that a prototxt writes into a layer: the first values of its parameters.
#pragma once

#include <optional>
#include <vector>

#include "tensor/shape.h"

namespace crema {

class BlobProto;
class LayerParameter;
struct ParameterSpec;

struct GivenBlob {
  std::optional<Shape> shape;  // none: the file gives values only
  bool four_axes = false;      // num, channels, height, width: leading ones do not count
  std::vector<float> values;
};

// Error when the values are not as many as the shape says.
GivenBlob given_blob(const BlobProto& blob);
// Puts it back in today's form.
void set_blob(const Shape& shape, const std::vector<float>& values, BlobProto* blob);

// Error when a layer that has blobs does not have one for each of these parameters.
void check_given_blobs(const LayerParameter& message, size_t parameters);
// The values of parameter k. Error when the blob has another shape.
std::vector<float> given_values(const LayerParameter& message, int k, const Shape& shape);

// For shapes of old files, which have four axes whatever the blob has.
Shape without_leading_ones(const Shape& shape);

}  // namespace crema
