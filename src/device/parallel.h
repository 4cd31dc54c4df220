// parallel_for: runs one body for every index on the context's device. Include it from .cu files
// only: nvcc compiles the same text in a CUDA build, and the C++ compiler in a build without CUDA.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/host_device.h"
#include "device/context.h"

#ifndef CREMA_CU_FILE
#error "device/parallel.h belongs into .cu files: a .cpp file would silently lose the GPU loop"
#endif
#ifdef __CUDACC__
#include "device/launch.h"
#endif

namespace crema {

#ifdef __CUDACC__
template <typename Body>
__global__ void run_body(int64_t count, Body body) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += stride)
    body(i);
}
#endif

// CPUs compute in float and double only. A type with a true member kGpuOnly, or a template with such
// a type among its arguments, is never met there, so nothing is compiled for it: 16-bit loops would
// be a quarter of all CPU code.
template <typename T>
concept MarkedGpuOnly = requires {
  requires T::kGpuOnly;
};
template <typename T>
struct GpuOnly : std::bool_constant<MarkedGpuOnly<T>> {};
template <template <typename...> typename Body, typename... T>
struct GpuOnly<Body<T...>>
    : std::bool_constant<MarkedGpuOnly<Body<T...>> || (GpuOnly<T>::value || ...)> {};
template <template <typename, auto...> typename Body, typename T, auto value, auto... values>
struct GpuOnly<Body<T, value, values...>>
    : std::bool_constant<MarkedGpuOnly<Body<T, value, values...>> || GpuOnly<T>::value> {};

// Calls body(i) for i in [0, count), concurrently and in any order. Body is a struct with a
// CREMA_HD const operator() and members that can be copied to a GPU (values, pointers to that
// device's memory). `grain`: the minimum number of indices per CPU thread.
template <typename Body>
void parallel_for(Context& context, int64_t count, const Body& body, int64_t grain = 4096) {
  if (count <= 0) return;
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    const int64_t blocks = (count + 255) / 256;
    launch(context.gpu(), run_body<Body>,
           {static_cast<unsigned>(std::min<int64_t>(blocks, 65536)), 256}, count, body);
    return;
  }
#endif
  (void)context, (void)grain;
  if constexpr (GpuOnly<Body>::value) {
    fail_on_cpu();
  } else {
    Body local = body;  // a copy per thread: a shared body would be reloaded for every element and
                        // prevent vectorization
#pragma omp parallel for simd schedule(static) firstprivate(local) if (count > grain)
    for (int64_t i = 0; i < count; ++i) local(i);
  }
}

}  // namespace crema
