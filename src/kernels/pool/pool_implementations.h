// The implementations of pooling, among which kernels/pool/pool.cpp chooses: see
// kernels/core/implementation.h.
#pragma once

#include "kernels/pool/pool.h"

namespace crema {

// Every case and device.
bool pool_forward_reference(Context& context, const PoolWindow& window, const PassRandom& random,
                            const Tensor& x, const Tensor& y, const Tensor& index,
                            const Tensor& mask);
bool pool_backward_reference(Context& context, const PoolWindow& window, const Tensor& x,
                             const Tensor& index, const Tensor& dy, const Tensor& dx);

// GPU: max and average without a mask, channels-last, not float64.
bool pool_forward_gpu(Context& context, const PoolWindow& window, const PassRandom& random,
                      const Tensor& x, const Tensor& y, const Tensor& index, const Tensor& mask);
bool pool_backward_gpu(Context& context, const PoolWindow& window, const Tensor& x,
                       const Tensor& index, const Tensor& dy, const Tensor& dx);
// GPU: the average over whole images of many channels, channels-last, not float64.
bool pool_whole_forward_gpu(Context& context, const PoolWindow& window, const PassRandom& random,
                            const Tensor& x, const Tensor& y, const Tensor& index,
                            const Tensor& mask);
bool pool_whole_backward_gpu(Context& context, const PoolWindow& window, const Tensor& x,
                             const Tensor& index, const Tensor& dy, const Tensor& dx);

}  // namespace crema
