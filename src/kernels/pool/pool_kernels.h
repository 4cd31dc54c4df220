// The implementations of kernels/pool/pool.h.
#pragma once

#include "kernels/core/kernel_registry.h"
#include "kernels/pool/pool.h"

namespace crema {

extern KernelsOf<decltype(pool_forward)> pool_forward_kernels;
extern KernelsOf<decltype(pool_backward)> pool_backward_kernels;

// Calls body<window, step>() for the windows of pool_walk.cuh; else returns false.
template <typename Body>
bool with_walk(const PoolWindow& w, const Body& body) {
  const auto is = [&](int window, int step) {
    return w.method == PoolMethod::max && w.kernel[0] == 1 && w.stride[0] == 1 && w.pad[0] == 0 &&
           w.kernel[1] == window && w.kernel[2] == window && w.stride[1] == step &&
           w.stride[2] == step;
  };
  if (is(3, 2)) return body.template operator()<3, 2>(), true;
  if (is(3, 1)) return body.template operator()<3, 1>(), true;
  if (is(2, 2)) return body.template operator()<2, 2>(), true;
  return false;
}

}  // namespace crema
