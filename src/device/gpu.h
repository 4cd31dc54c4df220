// The CUDA side of a Context. Only files of a CUDA build include it.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include "base/error.h"
#include "device/context.h"

namespace crema {

// One stream and the handles that work on it; owned by the Context.
struct Gpu {
  explicit Gpu(int ordinal);
  ~Gpu();
  cudaStream_t stream = nullptr;
  cublasHandle_t cublas = nullptr;
  cudnnHandle_t cudnn = nullptr;
};

// Throws an Error that says what failed and what CUDA said.
void check_cuda(cudaError_t status, const char* what);
void check_cublas(cublasStatus_t status, const char* what);
void check_cudnn(cudnnStatus_t status, const char* what);

}  // namespace crema
