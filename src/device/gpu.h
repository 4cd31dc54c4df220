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

// A stream and the handles that work on it; owned by the Context.
struct Gpu {
  Gpu(int ordinal, MemoryAccount& account);
  ~Gpu();
  cudaStream_t stream = nullptr;
  cublasHandle_t cublas = nullptr;
  cublasLtHandle_t cublas_lt = nullptr;
  cudnnHandle_t cudnn = nullptr;
  Tuning tuning;

  // For sums over many blocks: each leaves a part, and the last to finish adds the parts.
  static constexpr int64_t kParts = 1 << 20, kCounters = 1024;
  float* parts = nullptr;        // kParts
  unsigned* counters = nullptr;  // kCounters; zero before and after every kernel
  // Of cuBLAS: given, so that it never allocates.
  static constexpr size_t kBlasBytes = size_t{32} << 20;
  void* blas_workspace = nullptr;
  // Of all these, on the account.
  static constexpr size_t kOwnBytes =
      2 * (kParts * sizeof(float) + kCounters * sizeof(unsigned) + kBlasBytes);

  // A second stream for Context::aside(), which waits for what the first one had at mark(). Between
  // fork() and back() everything above is that stream's; join() makes the first one wait for it.
  // Of blocks that are ready to run on both, those of the first are begun with.
  void mark();
  void fork();
  void back();
  void join();

 private:
  void swap_streams();
  cudaStream_t other_stream_ = nullptr;
  float* other_parts_ = nullptr;
  unsigned* other_counters_ = nullptr;
  void* other_blas_workspace_ = nullptr;
  cudaEvent_t forked_ = nullptr, done_ = nullptr;
  MemoryAccount& account_;
  bool open_ = false;  // the second stream has work that the first has not waited for
};

// Throws an Error that says what failed and what CUDA said (device/gpu_errors.h); DeviceLost where
// nothing on the device can be used any more.
void check_cuda(cudaError_t status, const char* what);
void check_cublas(cublasStatus_t status, const char* what);
void check_cudnn(cudnnStatus_t status, const char* what);

}  // namespace crema
