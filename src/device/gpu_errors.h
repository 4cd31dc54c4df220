// What went wrong on a GPU, in words for its user. Pure functions: they need no GPU. Only files of
// a CUDA build include this.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

namespace crema {

// As CUDA writes them: 13000 is 13.0. driver: the newest CUDA that the driver knows; 0: no driver.
struct CudaVersions {
  int driver = 0, runtime = 0;
};
CudaVersions cuda_versions();

// What `status` means, and a way out.
std::string explain(cudaError_t status, const CudaVersions& versions);
// Whether every later call of this process fails as well.
bool loses_device(cudaError_t status);
// For an allocation of `wanted` bytes, with what the GPU had then.
std::string out_of_gpu_memory(size_t wanted, size_t free, size_t total);

}  // namespace crema
