#include "device/gpu.h"

#include <cstdlib>
#include <utility>

#include "device/device.h"
#include "device/gpu_errors.h"
#include "device/gpu_libraries.h"

namespace crema {

int gpu_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();  // no driver or no GPU: clears an error that is not ours
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

// After a failure a further call goes on where that one stopped.
void GpuStream::open(int priority) {
  if (!stream) {
    check_cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority),
               "creating a stream");
  }
  const auto allocate = [](auto*& memory, size_t bytes) {
    if (!memory) check_cuda(cudaMalloc(&memory, bytes), "allocating memory");
  };
  allocate(partial_sums, kPartialSums * sizeof(float));
  allocate(counters, kCounters * sizeof(unsigned));
  // In the stream's order: its first kernel may follow at once.
  check_cuda(cudaMemsetAsync(counters, 0, kCounters * sizeof(unsigned), stream), "clearing memory");
  allocate(blas_workspace, kBlasBytes);
}

void GpuStream::close() {
  cudaFree(blas_workspace);
  cudaFree(counters);
  cudaFree(partial_sums);
  cudaStreamDestroy(stream);
}

Gpu::Gpu(int ordinal, MemoryAccount& account) : account_(account) {
  load_cublas();
  check_cuda(cudaSetDevice(ordinal), "selecting the GPU");
  int greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&minimum_priority_, &greatest),
             "asking for priorities");
  open(greatest);
  check_cuda(cudaEventCreateWithFlags(&forked_, cudaEventDisableTiming), "creating an event");
  account_.take(kOwnBytes);
  check_cublas(cublasLtCreate(&cublas_lt), "starting cuBLAS");
  cudnn = open_cudnn(stream);
  cudaDeviceProp properties;
  check_cuda(cudaGetDeviceProperties(&properties, ordinal), "asking for the GPU's properties");
  card = {properties.major, properties.multiProcessorCount,
          static_cast<int>(properties.sharedMemPerBlockOptin)};
  tuning.open(cat(properties.name, "-", card.multiprocessors,
                  has_cudnn() ? cat("-cudnn", cudnn_version()) : "-no-cudnn"));
}

Gpu::~Gpu() {
  tuning.release();
  close_cudnn(cudnn);
  cublasLtDestroy(cublas_lt);
  if (cublas_) cublasDestroy(cublas_);
  account_.give_back(kOwnBytes);
  cudaEventDestroy(forked_);
  if (communication_.stream) {
    cudaEventDestroy(communication_.done);
    cudaEventDestroy(communication_.ready);
    cudaStreamDestroy(communication_.stream);
  }
  for (SideStream& side_stream : side_streams_) {
    if (side_stream.done) cudaEventDestroy(side_stream.done);
    if (side_stream.stream) side_stream.close();
  }
  close();
}

// Gives cuBLAS the current stream and its workspace.
void Gpu::set_up_cublas(const char* what) {
  check_cublas(cublasSetStream(cublas_, stream), what);
  check_cublas(cublasSetWorkspace(cublas_, blas_workspace, kBlasBytes), what);
}

cublasHandle_t Gpu::cublas() {
  if (!cublas_) {
    check_cublas(cublasCreate(&cublas_), "starting cuBLAS");
    set_up_cublas("starting cuBLAS");
  }
  return cublas_;
}

// Exchanges the main stream with a side stream; the same call exchanges them back.
void Gpu::change_stream(int side_stream) {
  std::swap<GpuStream>(*this, side_streams_[side_stream]);
  if (cublas_) set_up_cublas("changing the stream");
  set_cudnn_stream(cudnn, stream);
}

void Gpu::open_side_streams() {
  for (SideStream& side_stream : side_streams_) {
    side_stream.open(minimum_priority_);
    if (!side_stream.done) {
      check_cuda(cudaEventCreateWithFlags(&side_stream.done, cudaEventDisableTiming),
                 "creating an event");
    }
  }
  opened_ = true;
}

void Gpu::mark() {
  if (!opened_) open_side_streams();
  check_cuda(cudaEventRecord(forked_, stream), "starting work on a side stream");
}

void Gpu::fork(int side_stream) {
  check_cuda(cudaStreamWaitEvent(side_streams_[side_stream].stream, forked_, 0),
             "starting work on a side stream");
  change_stream(side_stream);
  side_streams_[side_stream].busy = true;
}

void Gpu::back(int side_stream) { change_stream(side_stream); }

// Has the highest priority, because other ranks wait for its data.
void Gpu::fork_communication() {
  auto& to = communication_;
  const char* const what = "starting work on the communication stream";
  if (!to.stream) {
    int minimum = 0, greatest = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&minimum, &greatest), "asking for priorities");
    check_cuda(cudaStreamCreateWithPriority(&to.stream, cudaStreamNonBlocking, greatest), what);
    check_cuda(cudaEventCreateWithFlags(&to.ready, cudaEventDisableTiming), what);
    check_cuda(cudaEventCreateWithFlags(&to.done, cudaEventDisableTiming), what);
  }
  const auto wait_for = [&](cudaStream_t other) {
    check_cuda(cudaEventRecord(to.ready, other), what);
    check_cuda(cudaStreamWaitEvent(to.stream, to.ready, 0), what);
  };
  wait_for(stream);
  for (const SideStream& side_stream : side_streams_) {
    if (side_stream.busy) wait_for(side_stream.stream);
  }
  std::swap(stream, to.stream);
  to.busy = communicating_ = true;
}

void Gpu::back_from_communication() {
  std::swap(stream, communication_.stream);
  communicating_ = false;
}

void Gpu::join() {
  if (communication_.busy) {
    check_cuda(cudaEventRecord(communication_.done, communication_.stream),
               "waiting for the communication stream");
    check_cuda(cudaStreamWaitEvent(stream, communication_.done, 0),
               "waiting for the communication stream");
    communication_.busy = false;
  }
  for (SideStream& side_stream : side_streams_) {
    if (!side_stream.busy) continue;
    check_cuda(cudaEventRecord(side_stream.done, side_stream.stream), "waiting for a side stream");
    check_cuda(cudaStreamWaitEvent(stream, side_stream.done, 0), "waiting for a side stream");
    side_stream.busy = false;
  }
}

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  const std::string message = cat(what, " failed: ", explain(status, cuda_versions()));
  if (loses_device(status)) throw DeviceLost(message);
  fail(message);
}

void check_cublas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  check_cuda(cudaFree(nullptr), what);  // a lost device, which the library reports as another error
  fail(what, " failed: cuBLAS says \"", cublasGetStatusString(status), "\"");
}

}  // namespace crema
