#include "device/gpu.h"

#include "device/device.h"

namespace crema {

int gpu_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();  // no driver or no card: not an error of ours
    return 0;
  }
  return count;
}

Gpu::Gpu(int ordinal) {
  check_cuda(cudaSetDevice(ordinal), "selecting the GPU");
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  check_cublas(cublasCreate(&cublas), "starting cuBLAS");
  check_cublas(cublasSetStream(cublas, stream), "starting cuBLAS");
  check_cudnn(cudnnCreate(&cudnn), "starting cuDNN");
  check_cudnn(cudnnSetStream(cudnn, stream), "starting cuDNN");
}

Gpu::~Gpu() {
  cudnnDestroy(cudnn);
  cublasDestroy(cublas);
  cudaStreamDestroy(stream);
}

void check_cuda(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    fail(what, " failed: CUDA says \"", cudaGetErrorString(status), "\" (",
         cudaGetErrorName(status), ")");
  }
}

void check_cublas(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    fail(what, " failed: cuBLAS says \"", cublasGetStatusString(status), "\"");
}

void check_cudnn(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS)
    fail(what, " failed: cuDNN says \"", cudnnGetErrorString(status), "\"");
}

}  // namespace crema
