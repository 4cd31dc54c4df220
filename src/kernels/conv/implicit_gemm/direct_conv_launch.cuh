// Launches the kernels of direct_conv_gpu.cu and direct_conv_wgrad_gpu.cu for
// direct_conv_params_gpu.cpp.
#pragma once

#include "device/programmatic_launch.h"
#include "kernels/conv/implicit_gemm/direct_conv.cuh"

namespace crema {

struct WindowGrid {
  int blocks, parts, threads, cluster;
};

void start_direct_conv(const Gpu& gpu, const DirectConvParams& n, DType dtype, bool data, int shape,
                       const WindowGrid& grid);
void start_direct_conv_wgrad(const Gpu& gpu, const DirectConvParams& n, DType dtype, int shape,
                             const WindowGrid& grid);

template <typename Kernel>
void launch_direct_conv(const Gpu& gpu, Kernel kernel, const DirectConvParams& n,
                        const WindowGrid& grid) {
  // At each launch, because the size depends on the case; a net launches only once, while its graph
  // is captured.
  check_cuda(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, n.shared_bytes),
      "reserving shared memory");
  const dim3 blocks(grid.blocks, grid.parts), cluster(grid.cluster);
  launch_programmatic(
      gpu, kernel, {blocks, dim3(grid.threads), static_cast<size_t>(n.shared_bytes), cluster}, n);
}

}  // namespace crema
