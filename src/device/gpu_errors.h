// GPU errors in words for the user. Pure functions: they need no GPU. Only files of a CUDA build
// include this header.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

namespace crema {

// In CUDA's notation: 13000 is 13.0. driver: the newest CUDA that the driver supports; 0: no
// driver.
struct CudaVersions {
  int driver = 0, runtime = 0;
};
CudaVersions cuda_versions();

// The meaning of `status`, and what to do about it.
std::string explain(cudaError_t status, const CudaVersions& versions);
// True when every later CUDA call of this process will fail too.
bool loses_device(cudaError_t status);
// Message for a failed allocation of `wanted` bytes, with the memory the GPU had at that moment.
std::string out_of_gpu_memory(size_t wanted, size_t free, size_t total);

}  // namespace crema
