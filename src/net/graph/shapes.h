// Checks of the shapes that layers infer.
#pragma once

#include <vector>

#include "proto/layer.pb.h"
#include "tensor/shape.h"

namespace crema {

// Error for a top that no kernel can write.
void check_tops(const LayerParameter& message, const std::vector<Shape>& shapes);

}  // namespace crema
