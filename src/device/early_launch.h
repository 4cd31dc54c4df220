// Starting a kernel while the one before it in the stream ends, in CUDA code only: its blocks take
// the places that those leave and wait there, so that neither the start of a kernel nor what it
// does before its first read costs time. Cards before compute capability 9.0 start it afterwards.
#pragma once

#include <utility>

#include "device/launch.h"

namespace crema {

// The kernel calls wait_for_earlier_kernels() in every thread before it touches memory that other
// kernels write or read. Shape: without a cluster.
template <typename... Wanted, typename... Given>
void launch_early(const Gpu& gpu, void (*kernel)(Wanted...), const LaunchShape& shape,
                  Given&&... arguments) {
  int device = 0, major = 0;
  check_cuda(cudaGetDevice(&device), "asking for the device");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "asking for the compute capability");
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t how{};
  how.gridDim = shape.blocks;
  how.blockDim = shape.threads;
  how.dynamicSmemBytes = shape.shared_bytes;
  how.stream = gpu.stream;
  how.attrs = &early;
  how.numAttrs = major >= 9 ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&how, kernel, std::forward<Given>(arguments)...),
             "launching a kernel");
}

#ifdef __CUDACC__
// full: the kernel takes all places of the card. Then the next one may start as soon as all blocks
// have come here, else when they have ended: its first blocks would crowd the places that are left.
__device__ inline void wait_for_earlier_kernels(bool full) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (full) asm volatile("griddepcontrol.launch_dependents;");
#endif
}
#endif

}  // namespace crema
