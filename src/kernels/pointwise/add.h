// Element-wise sums of tensors: they combine the gradients of several readers of a blob.
#pragma once

#include <vector>

#include "kernels/pointwise/bias.h"
#include "tensor/tensor.h"

namespace crema {

// y += x. Same shape and layout; x may be of 16 bits if y is float32.
void add_to(Context& context, const Tensor& x, const Tensor& y);

// y = relu(y + x). Same shape, layout and dtype.
void add_and_relu(Context& context, const Tensor& x, Relu relu, const Tensor& y);

// y += a * b, of as many float32 values.
void add_product(Context& context, const Tensor& a, const Tensor& b, const Tensor& y);

// y = parts[0] + parts[1] + ..., in this order. All have the same shape, layout and dtype; y may be
// the first of the parts.
void add_up(Context& context, const std::vector<Tensor>& parts, const Tensor& y);

}  // namespace crema
