// Values of images between pixels.
#pragma once

#include <string>

#include "exchange/onnx/layer_export.h"

namespace crema {

// Bilinear values of x, (N, C, H, W), at positions (N, 2, H', W'), columns first, in pixels. Beyond
// the border there are zeros, or with `repeats` the border again.
std::string sampled(LayerExport& layer, const std::string& x, int64_t height, int64_t width,
                    const std::string& positions, bool repeats);

}  // namespace crema
