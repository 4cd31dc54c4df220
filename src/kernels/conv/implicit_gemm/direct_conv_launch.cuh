// Launches the kernels of direct_conv_gpu.cu and direct_conv_wgrad_gpu.cu for
// direct_conv_params_gpu.cpp.
#pragma once

#include "device/programmatic_launch.h"
#include "kernels/conv/implicit_gemm/direct_conv.cuh"

namespace crema {

void start_direct_conv(const Gpu& gpu, const DirectConvParams& n, DType dtype, bool dgrad,
                       int shape);
void start_direct_conv_wgrad(const Gpu& gpu, const DirectConvParams& n, DType dtype, int shape);

template <typename Kernel>
void launch_direct_conv(const Gpu& gpu, Kernel kernel, const DirectConvParams& n) {
  // At each launch, because the size depends on the case; a net launches only once, while its graph
  // is captured.
  check_cuda(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, n.layout.bytes),
      "reserving shared memory");
  const dim3 blocks(n.grid.blocks, n.grid.column_blocks), cluster(n.grid.cluster);
  launch_programmatic(
      gpu, kernel, {blocks, dim3(n.grid.threads), static_cast<size_t>(n.layout.bytes), cluster}, n);
}

}  // namespace crema
