// y += x, element by element: how the gradients of several readers of a blob come together.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// Same shape, layout and dtype.
void add_to(Context& context, const Tensor& x, const Tensor& y);

}  // namespace crema
