#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "base/error.h"
#include "comm/add_parts.h"
#include "device/gpu.h"
#include "device/launch.h"

namespace crema {
namespace {

// 16 bytes, read and written in one access.
template <typename T>
struct alignas(16) Pack {
  static constexpr int kCount = 16 / sizeof(T);
  T values[kCount];
};

template <typename T>
__global__ void add_parts_kernel(T* sums, const T* parts, int64_t count, int64_t stride,
                                 int others) {
  constexpr int kCount = Pack<T>::kCount;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x * kCount;
  int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kCount;
  for (; i + kCount <= count; i += step) {
    Pack<T> own = *reinterpret_cast<const Pack<T>*>(sums + i);
    float sum[kCount];
#pragma unroll
    for (int k = 0; k < kCount; ++k) sum[k] = static_cast<float>(own.values[k]);
    for (int other = 0; other < others; ++other) {
      const Pack<T> added = *reinterpret_cast<const Pack<T>*>(parts + other * stride + i);
#pragma unroll
      for (int k = 0; k < kCount; ++k) sum[k] += static_cast<float>(added.values[k]);
    }
#pragma unroll
    for (int k = 0; k < kCount; ++k) own.values[k] = static_cast<T>(sum[k]);
    *reinterpret_cast<Pack<T>*>(sums + i) = own;
  }
  for (; i < count; ++i) {  // the one thread with a partial pack
    float sum = static_cast<float>(sums[i]);
    for (int other = 0; other < others; ++other)
      sum += static_cast<float>(parts[other * stride + i]);
    sums[i] = static_cast<T>(sum);
  }
}

template <typename T>
void launch(Context& context, void* sums, const void* parts, int64_t count, int64_t stride,
            int others) {
  constexpr int kThreads = 256;
  const int64_t packs = (count + Pack<T>::kCount - 1) / Pack<T>::kCount;
  const int64_t blocks =
      std::min<int64_t>((packs + kThreads - 1) / kThreads, 2 * context.gpu().card.multiprocessors);
  launch(context.gpu(), add_parts_kernel<T>, {static_cast<unsigned>(blocks), kThreads},
         static_cast<T*>(sums), static_cast<const T*>(parts), count, stride, others);
}

}  // namespace

void add_parts(Context& context, void* sums, const void* parts, int64_t count, int64_t stride,
               int others, Element element) {
  if (count == 0) return;
  switch (element) {
    case Element::f32:
      return launch<float>(context, sums, parts, count, stride, others);
    case Element::f16:
      return launch<__half>(context, sums, parts, count, stride, others);
    case Element::bf16:
      return launch<__nv_bfloat16>(context, sums, parts, count, stride, others);
    case Element::f64:
      fail("add_parts: float64 is not summed in parts");
  }
}

}  // namespace crema
