// Starting kernels, in CUDA code only. Kernels that follow each other on a stream overlap at the
// seam: the next one's blocks come onto the card while the last blocks of this one finish, and wait
// there (programmatic dependent launch, compute capability 9.0 and newer). Between small kernels
// that is worth a microsecond each.
#pragma once

#include <utility>

#include "device/gpu.h"

namespace crema {

#ifdef __CUDACC__
// The first statement of every kernel that launch() starts: nothing before it may read or write
// memory that other kernels use.
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
#endif

struct LaunchShape {
  dim3 blocks = 1, threads = 1;
  size_t shared_bytes = 0;
  dim3 cluster = 1;  // blocks that share their memory
};

// On gpu.stream. Shared memory beyond 48 KB must have been allowed for the kernel.
template <typename... Wanted, typename... Given>
void launch(const Gpu& gpu, void (*kernel)(Wanted...), const LaunchShape& shape,
            Given&&... arguments) {
  cudaLaunchAttribute attributes[2]{};
  unsigned count = 0;
  if (gpu.overlaps_seams) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cluster.x * shape.cluster.y * shape.cluster.z > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {shape.cluster.x, shape.cluster.y, shape.cluster.z};
  }
  cudaLaunchConfig_t how{};
  how.gridDim = shape.blocks;
  how.blockDim = shape.threads;
  how.dynamicSmemBytes = shape.shared_bytes;
  how.stream = gpu.stream;
  how.attrs = attributes;
  how.numAttrs = count;
  check_cuda(cudaLaunchKernelEx(&how, kernel, std::forward<Given>(arguments)...),
             "launching a kernel");
}

}  // namespace crema
