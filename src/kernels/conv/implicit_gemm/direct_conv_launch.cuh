// How direct_conv_params_gpu.cpp starts the kernels of direct_conv_gpu.cu and
// direct_conv_wgrad_gpu.cu.
#pragma once

#include "device/early_launch.h"
#include "kernels/conv/implicit_gemm/direct_conv.cuh"

namespace crema {

struct WindowGrid {
  int blocks, parts, threads, cluster;
};

void start_window_product(const Gpu& gpu, const WindowNumbers& n, DType dtype, bool data, int shape,
                          const WindowGrid& grid);
void start_window_gradient(const Gpu& gpu, const WindowNumbers& n, DType dtype, int shape,
                           const WindowGrid& grid);

template <typename Kernel>
void launch_window(const Gpu& gpu, Kernel kernel, const WindowNumbers& n, const WindowGrid& grid) {
  // At each launch, because it depends on the case; a net launches once, while its graph is
  // recorded.
  check_cuda(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, n.shared_bytes),
      "reserving shared memory");
  const dim3 blocks(grid.blocks, grid.parts), cluster(grid.cluster);
  launch_early(gpu, kernel,
               {blocks, dim3(grid.threads), static_cast<size_t>(n.shared_bytes), cluster}, n);
}

}  // namespace crema
