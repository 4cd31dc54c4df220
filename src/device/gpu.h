// The CUDA side of a Context. Only files of a CUDA build include it.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "base/error.h"
#include "device/context.h"
#include "device/cudnn.h"
#include "device/memory_account.h"
#include "device/tuning.h"

namespace crema {

// A stream and the workspaces that its kernels share.
struct GpuStream {
  cudaStream_t stream = nullptr;
  // For reductions over many blocks: each block writes a partial sum, and the last to finish adds
  // them.
  static constexpr int64_t kPartialSums = 1 << 20, kCounters = 1024;
  float* partial_sums = nullptr;  // kPartialSums
  unsigned* counters = nullptr;   // kCounters; zero before and after every kernel
  // Passed to cuBLAS, so that it never allocates a workspace.
  static constexpr size_t kBlasBytes = size_t{24} << 20;
  void* blas_workspace = nullptr;
  static constexpr size_t kBytes =
      kPartialSums * sizeof(float) + kCounters * sizeof(unsigned) + kBlasBytes;

  void open(int priority);
  void close();
};

// Properties of a card that kernels need.
struct GpuCard {
  int major = 0;  // of the compute capability
  int multiprocessors = 0;
  int shared_bytes = 0;  // shared memory that one block may request

  // Its dynamic part: the rest is room for the kernels' static __shared__ variables.
  int dynamic_shared_limit() const { return shared_bytes - 256; }
  // Bytes that CUDA takes of a multiprocessor's shared memory for each block on it.
  static constexpr int kReservedShared = 1024;

  bool has_async_mma() const { return major >= 8; }  // mma.m16n8k16 and cp.async
  bool has_clusters() const { return major >= 9; }
  bool has_programmatic_launch() const { return major >= 9; }
};

// The stream that work is queued on, and the library handles bound to it; owned by the Context.
struct Gpu : GpuStream {
  Gpu(int ordinal, MemoryAccount& account);
  ~Gpu();
  // Opened with the first call, because it takes GPU memory and many nets need only cublas_lt. Not
  // while a CUDA graph is recorded: what is recorded has run before.
  cublasHandle_t cublas();
  cublasLtHandle_t cublas_lt = nullptr;
  cudnnContext* cudnn = nullptr;  // null in a build without cuDNN
  GpuCard card;
  Tuning tuning;

  // Side streams for Context::on_side_stream(); they wait for the work that the main stream had
  // queued at mark(). Between fork() and back() the members above are those of the side stream;
  // join() makes the main stream wait for all of them. The GPU runs ready blocks of the main stream
  // first. They are opened with the first mark(): only small nets need them. The account has their
  // memory from the start, so that planning is right.
  static constexpr size_t kOwnBytes = (1 + Context::kSideStreams) * kBytes;  // in account_
  // Of these, the part that is not allocated yet.
  size_t unopened_bytes() const { return opened_ ? 0 : Context::kSideStreams * kBytes; }
  void mark();
  void fork(int side_stream);
  void back(int side_stream);
  // Likewise for the communication stream, which waits for all other streams and has no workspaces.
  // It is opened with the first call.
  void fork_communication();
  void back_from_communication();
  // Whether work is being queued on it.
  bool communicating() const { return communicating_; }
  void join();

 private:
  void open_side_streams();
  void set_up_cublas(const char* what);
  void change_stream(int side_stream);
  struct SideStream : GpuStream {
    cudaEvent_t done = nullptr;
    bool busy = false;  // it has work that the main stream has not waited for
  };
  SideStream side_streams_[Context::kSideStreams];
  bool opened_ = false;  // side_streams_
  int minimum_priority_ = 0;
  cublasHandle_t cublas_ = nullptr;
  struct {
    cudaStream_t stream = nullptr;
    cudaEvent_t ready = nullptr, done = nullptr;
    bool busy = false;
  } communication_;
  bool communicating_ = false;
  cudaEvent_t forked_ = nullptr;
  MemoryAccount& account_;
};

// Throws an Error with what failed and what CUDA said (device/gpu_errors.h); a DeviceLost where
// nothing on the device can be used any more.
void check_cuda(cudaError_t status, const char* what);
void check_cublas(cublasStatus_t status, const char* what);

}  // namespace crema
