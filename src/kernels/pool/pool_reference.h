// The reference implementation of pooling for every case and device; kernels/pool/pool.cpp prefers
// its own CPU loops where they support the case.
#pragma once

#include "kernels/pool/pool.h"

namespace crema {

void pool_forward_reference(Context& context, const PoolWindow& window, const PassRandom& random,
                            const Tensor& x, const Tensor& y, const Tensor& index,
                            const Tensor& mask);
void pool_backward_reference(Context& context, const PoolWindow& window, const Tensor& x,
                             const Tensor& index, const Tensor& dy, const Tensor& dx);

// GPU: max and average, channels-last. Returns false for an unsupported case.
bool pool_forward_gpu(Context& context, const PoolWindow& window, const Tensor& x, const Tensor& y,
                      const Tensor& index);
bool pool_backward_gpu(Context& context, const PoolWindow& window, const Tensor& index,
                       const Tensor& dy, const Tensor& dx);
// The same for global average pooling over many channels.
bool pool_whole_forward_gpu(Context& context, const PoolWindow& window, const Tensor& x,
                            const Tensor& y);
bool pool_whole_backward_gpu(Context& context, const PoolWindow& window, const Tensor& dy,
                             const Tensor& dx);

}  // namespace crema
