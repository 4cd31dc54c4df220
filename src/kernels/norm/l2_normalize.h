// Rows scaled to length 1, in place.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// Each row k of w, its first axis, becomes w[k] / sqrt(|w[k]|^2 + epsilon). scratch: bytes for one
// number of w's dtype a row.
void make_unit_rows(Context& context, double epsilon, const Tensor& w, const Tensor& scratch);

}  // namespace crema
