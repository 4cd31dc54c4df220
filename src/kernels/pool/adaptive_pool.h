// Adaptive pooling to a given output size: output row h of H' covers input rows floor(h * H / H')
// to ceil((h + 1) * H / H') - 1, columns likewise, and takes the maximum (the first of equal values
// in scan order) or the mean. Shapes: x (N, C, H, W), y (N, C, H', W'); both NCHW or both
// channels-last. position: int32, shaped like y, row * W + column of the maximum; only for max
// pooling.
#pragma once

#include "tensor/tensor.h"

namespace crema {

void adaptive_pool(Context& context, bool largest, const Tensor& x, const Tensor& position,
                   const Tensor& y);
void adaptive_pool_gradient(Context& context, bool largest, const Tensor& position,
                            const Tensor& dy, const Tensor& dx);

}  // namespace crema
