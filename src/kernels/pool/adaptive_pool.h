// Pooling to a given size: output h of H' looks at rows floor(h * H / H') to
// ceil((h + 1) * H / H') - 1, columns likewise, and keeps the largest value (of equal ones the
// first in scan order) or the mean. Shapes: x (N, C, H, W), y (N, C, H', W'); plain or
// channels-last, both alike. place: int32 like y, row * W + column of the kept value; for the
// largest value only.
#pragma once

#include "tensor/tensor.h"

namespace crema {

void adaptive_pool(Context& context, bool largest, const Tensor& x, const Tensor& place,
                   const Tensor& y);
void adaptive_pool_gradient(Context& context, bool largest, const Tensor& place, const Tensor& dy,
                            const Tensor& dx);

}  // namespace crema
