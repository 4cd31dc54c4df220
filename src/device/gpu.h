// The CUDA side of a Context. Only files of a CUDA build include it.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include "base/error.h"
#include "device/context.h"
#include "device/memory_account.h"
#include "device/tuning.h"

namespace crema {

// A stream and the memory that kernels on it share.
struct Lane {
  cudaStream_t stream = nullptr;
  // For sums over many blocks: each leaves a part, and the last to finish adds the parts.
  static constexpr int64_t kParts = 1 << 20, kCounters = 1024;
  float* parts = nullptr;        // kParts
  unsigned* counters = nullptr;  // kCounters; zero before and after every kernel
  // Of cuBLAS: given, so that it never allocates.
  static constexpr size_t kBlasBytes = size_t{24} << 20;
  void* blas_workspace = nullptr;
  static constexpr size_t kBytes =
      kParts * sizeof(float) + kCounters * sizeof(unsigned) + kBlasBytes;

  void open(int priority);
  void close();
};

// The lane that work is queued on, and the handles that work on it; owned by the Context.
struct Gpu : Lane {
  Gpu(int ordinal, MemoryAccount& account);
  ~Gpu();
  cublasHandle_t cublas = nullptr;
  cublasLtHandle_t cublas_lt = nullptr;
  cudnnHandle_t cudnn = nullptr;
  Tuning tuning;

  // More lanes for Context::aside(), which wait for what the first one had at mark(). Between
  // fork() and back() everything above is that lane's; join() makes the first one wait for them
  // all. Of blocks that are ready to run the card begins with those of the first lane.
  static constexpr size_t kOwnBytes = (1 + Context::kAsideLanes) * kBytes;  // on the account
  void mark();
  void fork(int lane);
  void back(int lane);
  void join();

 private:
  void change_lane(int lane);
  struct AsideLane : Lane {
    cudaEvent_t done = nullptr;
    bool busy = false;  // it has work that the first lane has not waited for
  };
  AsideLane aside_[Context::kAsideLanes];
  cudaEvent_t forked_ = nullptr;
  MemoryAccount& account_;
};

// Throws an Error that says what failed and what CUDA said (device/gpu_errors.h); DeviceLost where
// nothing on the device can be used any more.
void check_cuda(cudaError_t status, const char* what);
void check_cublas(cublasStatus_t status, const char* what);
void check_cudnn(cudnnStatus_t status, const char* what);

}  // namespace crema
