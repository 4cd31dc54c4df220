// What fused layers and the net need from a Pooling.
#pragma once

#include <optional>

#include "kernels/pool/pool_nd.h"
#include "layers/layer.h"

namespace crema {

// The window of a Pooling after setup. None if it is not implemented by kernels/pool/pool.h.
std::optional<PoolWindow> pool_window(const Layer& pooling, const Shape& bottom);

// The same for any number of axes, one entry for each.
PoolNd pool_axes(const Layer& pooling, const Shape& bottom);

// After setup, for any layer: which window of a Pooling is outside of the image, and what to do
// about it. Empty if there is none.
std::string empty_windows(const Layer& layer, const std::vector<Shape>& bottoms);

}  // namespace crema
