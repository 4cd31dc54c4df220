// Scales rows to length 1, in place.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// Each row k of w, along the first axis, becomes w[k] / sqrt(|w[k]|^2 + epsilon). scratch: room for
// one value of w's dtype per row.
void l2_normalize_rows(Context& context, double epsilon, const Tensor& w, const Tensor& scratch);

}  // namespace crema
