// What losses and Accuracy share.
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace crema {

// Error for the first label that is not an integer from 0 to classes - 1 (nor the ignored one): it
// names value and position. On the GPU nothing is read back: kernels give NaN for such a label
// instead.
void check_labels(const Tensor& labels, int64_t classes, std::optional<int> ignored);

}  // namespace crema
