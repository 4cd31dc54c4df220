// Sums of tensors, element by element: how the gradients of several readers of a blob come
// together.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace crema {

// y += x. Same shape and layout; x may be of 16 bits where y is float32.
void add_to(Context& context, const Tensor& x, const Tensor& y);

// y = parts[0] + parts[1] + ..., in this order. All of one shape, layout and dtype; y may be the
// first of the parts.
void add_up(Context& context, const std::vector<Tensor>& parts, const Tensor& y);

}  // namespace crema
