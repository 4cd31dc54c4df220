// Checked kernel launches, optionally with clusters of blocks; CUDA code only.
#pragma once

#include <utility>

#include "device/gpu.h"

namespace crema {

struct LaunchShape {
  dim3 blocks = 1, threads = 1;
  size_t shared_bytes = 0;
  dim3 cluster = 1;  // blocks that share their shared memory
};

// On gpu.stream. The kernel must have been allowed shared memory beyond 48 KB beforehand.
template <typename... Wanted, typename... Given>
void launch(const Gpu& gpu, void (*kernel)(Wanted...), const LaunchShape& shape,
            Given&&... arguments) {
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {shape.cluster.x, shape.cluster.y, shape.cluster.z};
  cudaLaunchConfig_t how{};
  how.gridDim = shape.blocks;
  how.blockDim = shape.threads;
  how.dynamicSmemBytes = shape.shared_bytes;
  how.stream = gpu.stream;
  how.attrs = &cluster;
  how.numAttrs = shape.cluster.x * shape.cluster.y * shape.cluster.z > 1 ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&how, kernel, std::forward<Given>(arguments)...),
             "launching a kernel");
}

}  // namespace crema
