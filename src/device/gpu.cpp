#include "device/gpu.h"

#include <cstdlib>
#include <utility>

#include "device/device.h"
#include "device/gpu_errors.h"

namespace crema {

int gpu_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();  // no driver or no card: not an error of ours
    return 0;
  }
  return count;
}

std::string gpu_problem() {
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return "";
  cudaGetLastError();
  if (status == cudaSuccess) status = cudaErrorNoDevice;
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return cat(explain(status, cuda_versions()),
             visible ? cat("; CUDA_VISIBLE_DEVICES is \"", visible, "\"") : "");
}

Gpu::Gpu(int ordinal, MemoryAccount& account) : account_(account) {
  check_cuda(cudaSetDevice(ordinal), "selecting the GPU");
  int least = 0, greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
  check_cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
             "creating a stream");
  check_cuda(cudaStreamCreateWithPriority(&other_stream_, cudaStreamNonBlocking, least),
             "creating a stream");
  check_cuda(cudaEventCreateWithFlags(&forked_, cudaEventDisableTiming), "creating an event");
  check_cuda(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming), "creating an event");
  check_cublas(cublasCreate(&cublas), "starting cuBLAS");
  check_cublas(cublasSetStream(cublas, stream), "starting cuBLAS");
  check_cublas(cublasLtCreate(&cublas_lt), "starting cuBLAS");
  check_cudnn(cudnnCreate(&cudnn), "starting cuDNN");
  check_cudnn(cudnnSetStream(cudnn, stream), "starting cuDNN");
  for (float** of_stream : {&parts, &other_parts_})
    check_cuda(cudaMalloc(of_stream, kParts * sizeof(float)), "allocating memory");
  for (unsigned** of_stream : {&counters, &other_counters_}) {
    check_cuda(cudaMalloc(of_stream, kCounters * sizeof(unsigned)), "allocating memory");
    check_cuda(cudaMemset(*of_stream, 0, kCounters * sizeof(unsigned)), "clearing memory");
  }
  for (void** of_stream : {&blas_workspace, &other_blas_workspace_})
    check_cuda(cudaMalloc(of_stream, kBlasBytes), "allocating memory");
  account_.take(kOwnBytes);
  check_cublas(cublasSetWorkspace(cublas, blas_workspace, kBlasBytes), "starting cuBLAS");
  cudaDeviceProp card;
  check_cuda(cudaGetDeviceProperties(&card, ordinal), "asking for the GPU's name");
  tuning.open(cat(card.name, "-", card.multiProcessorCount, "-cudnn", cudnnGetVersion()));
}

Gpu::~Gpu() {
  tuning.release();
  account_.give_back(kOwnBytes);
  cudaFree(other_blas_workspace_);
  cudaFree(blas_workspace);
  cudaFree(other_counters_);
  cudaFree(counters);
  cudaFree(other_parts_);
  cudaFree(parts);
  cudnnDestroy(cudnn);
  cublasLtDestroy(cublas_lt);
  cublasDestroy(cublas);
  cudaEventDestroy(done_);
  cudaEventDestroy(forked_);
  cudaStreamDestroy(other_stream_);
  cudaStreamDestroy(stream);
}

void Gpu::swap_streams() {
  std::swap(stream, other_stream_);
  std::swap(parts, other_parts_);
  std::swap(counters, other_counters_);
  std::swap(blas_workspace, other_blas_workspace_);
  check_cublas(cublasSetStream(cublas, stream), "changing the stream");
  check_cublas(cublasSetWorkspace(cublas, blas_workspace, kBlasBytes), "changing the stream");
  check_cudnn(cudnnSetStream(cudnn, stream), "changing the stream");
}

void Gpu::mark() { check_cuda(cudaEventRecord(forked_, stream), "starting work aside"); }

void Gpu::fork() {
  check_cuda(cudaStreamWaitEvent(other_stream_, forked_, 0), "starting work aside");
  swap_streams();
  open_ = true;
}

void Gpu::back() { swap_streams(); }

void Gpu::join() {
  if (!open_) return;
  check_cuda(cudaEventRecord(done_, other_stream_), "waiting for work aside");
  check_cuda(cudaStreamWaitEvent(stream, done_, 0), "waiting for work aside");
  open_ = false;
}

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  const std::string message = cat(what, " failed: ", explain(status, cuda_versions()));
  if (loses_device(status)) throw DeviceLost(message);
  fail(message);
}

void check_cublas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  check_cuda(cudaFree(nullptr), what);  // a lost device, which the library calls by another name
  fail(what, " failed: cuBLAS says \"", cublasGetStatusString(status), "\"");
}

void check_cudnn(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  check_cuda(cudaFree(nullptr), what);
  fail(what, " failed: cuDNN says \"", cudnnGetErrorString(status), "\"");
}

}  // namespace crema
