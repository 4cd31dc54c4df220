// Programmatic dependent launch, in CUDA code only: the blocks of a kernel take the resources that
// the blocks of the previous kernel free and wait there, which hides the launch and all work before
// the first read. GPUs before compute capability 9.0 launch normally.
#pragma once

#include <utility>

#include "device/launch.h"

namespace crema {

// True if the next work on the stream will depend on a single kernel, which is assumed outside of a
// capture. In a recorded graph it may depend on another type of node or on several nodes; it then
// waits for them as usual.
inline bool follows_kernel(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  check_cuda(cudaStreamIsCapturing(stream, &status), "asking whether a stream is recorded");
  if (status == cudaStreamCaptureStatusNone) return true;
#if CUDART_VERSION >= 13000
  const cudaGraphNode_t* before = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  check_cuda(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &before, &edges, &count),
             "asking what a recorded stream waits for");
  if (count != 1) return false;
  cudaGraphNodeType type{};
  check_cuda(cudaGraphNodeGetType(before[0], &type), "asking what a recorded stream waits for");
  return type == cudaGraphNodeTypeKernel;
#else
  return false;
#endif
}

// The kernel calls wait_for_earlier_kernels() in every thread before it touches memory that other
// kernels write or read, and may call let_next_kernel_start() after it.
template <typename... Wanted, typename... Given>
void launch_programmatic(const Gpu& gpu, void (*kernel)(Wanted...), const LaunchShape& shape,
                         Given&&... arguments) {
  cudaLaunchAttribute wanted[2] = {};
  unsigned count = 0;
  if (shape.cluster.x * shape.cluster.y * shape.cluster.z > 1) {
    wanted[count].id = cudaLaunchAttributeClusterDimension;
    wanted[count++].val.clusterDim = {shape.cluster.x, shape.cluster.y, shape.cluster.z};
  }
  if (gpu.card.has_programmatic_launch() && follows_kernel(gpu.stream)) {
    wanted[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    wanted[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  cudaLaunchConfig_t how{};
  how.gridDim = shape.blocks;
  how.blockDim = shape.threads;
  how.dynamicSmemBytes = shape.shared_bytes;
  how.stream = gpu.stream;
  how.attrs = wanted;
  how.numAttrs = count;
  check_cuda(cudaLaunchKernelEx(&how, kernel, std::forward<Given>(arguments)...),
             "launching a kernel");
}

#ifdef __CUDACC__
__device__ inline void wait_for_earlier_kernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Allows the next kernel to launch once every block has called this or ended. Its blocks take any
// free slot and wait there. So call it early only in a kernel that fills the GPU, otherwise before
// the last stores: if some multiprocessors are idle, they receive more of the next kernel's blocks
// than the others.
__device__ inline void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
#endif

}  // namespace crema
