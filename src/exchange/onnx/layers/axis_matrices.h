// Constant matrices, and products with them along the last two axes of images.
#pragma once

#include <string>
#include <vector>

#include "exchange/onnx/layer_export.h"

namespace crema {

// Row i has the weights of an axis' values in value i of the result.
struct AxisMatrix {
  int64_t results = 0, extent = 0;
  std::vector<float> weights;  // (results, extent)

  AxisMatrix(int64_t results_, int64_t extent_)
      : results(results_), extent(extent_), weights(results_ * extent_) {}
  float& at(int64_t result, int64_t i) { return weights[result * extent + i]; }
};

// Returns rows * x * columns'.
std::string mixed_axes(LayerExport& layer, const std::string& x, const AxisMatrix& rows,
                       const AxisMatrix& columns);

}  // namespace crema
