// Max unpooling: scatters values to the positions that a max pooling's mask names.
//   y[n, c, mask[n,c,i]] = x[n,c,i], 0 elsewhere; the last of several values for one position wins
// Shapes: x and mask (N, C, h, w), y (N, C, H, W); all NCHW or all channels-last. A position in the
// mask is row * W + column. Positions outside y are ignored on a GPU and are an Error on the CPU;
// -1, from an empty pooling window, names no position.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// The mask is float64 where x is, else float32. latest: scratch, int32, with as many elements as y.
void unpool(Context& context, const Tensor& x, const Tensor& mask, const Tensor& latest,
            const Tensor& y);
// dx[n,c,i] = dy[n, c, mask[n,c,i]]
void unpool_gradient(Context& context, const Tensor& mask, const Tensor& dy, const Tensor& dx);

}  // namespace crema
