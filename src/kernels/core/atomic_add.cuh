// Vector atomics: adds adjacent values to memory in one operation, in any order relative to other
// threads. Only for device code.
#pragma once

namespace crema {

// `to` is aligned to two floats.
__device__ inline void atomic_add_pair(float* to, float2 values) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(values.x),
               "f"(values.y)
               : "memory");
#else
  atomicAdd(to, values.x);
  atomicAdd(to + 1, values.y);
#endif
}

// `to` is aligned to four floats.
__device__ inline void atomic_add_quad(float* to, float4 values) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(values.x),
               "f"(values.y), "f"(values.z), "f"(values.w)
               : "memory");
#else
  atomic_add_pair(to, {values.x, values.y});
  atomic_add_pair(to + 2, {values.z, values.w});
#endif
}

}  // namespace crema
