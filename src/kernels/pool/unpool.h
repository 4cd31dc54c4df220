// Undoes a max pooling: values go back to the places that its mask names.
//   y[n, c, mask[n,c,i]] = x[n,c,i], 0 elsewhere; of several values for one place the last counts
// Shapes: x and mask (N, C, h, w), y (N, C, H, W); plain or channels-last, all alike. A place in
// the mask is a row times W plus a column. On a GPU places outside of y are passed over, on the CPU
// they are an Error; -1, where the pooling's window was empty, is no place.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// The mask is float64 where x is, else float32. latest: int32, as many as y has elements, scratch.
void unpool(Context& context, const Tensor& x, const Tensor& mask, const Tensor& latest,
            const Tensor& y);
// dx[n,c,i] = dy[n, c, mask[n,c,i]]
void unpool_gradient(Context& context, const Tensor& mask, const Tensor& dy, const Tensor& dx);

}  // namespace crema
