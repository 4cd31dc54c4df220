// Pooling's body for every case and device; kernels/pool.cpp prefers its own CPU loops where they
// serve.
#pragma once

#include "kernels/pool.h"

namespace crema {

void pool_forward_plain(Context& context, const PoolWindow& window, const Random& random,
                        const Tensor& x, const Tensor& y, const Tensor& index, const Tensor& mask);
void pool_backward_plain(Context& context, const PoolWindow& window, const Tensor& x,
                         const Tensor& index, const Tensor& dy, const Tensor& dx);

}  // namespace crema
