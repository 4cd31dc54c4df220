#include "device/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"
#include "device/memory_account.h"
#ifdef CREMA_CUDA
#include "device/gpu.h"
#include "device/gpu_errors.h"
#endif

namespace crema {
namespace {

#ifdef CREMA_CUDA
void* allocate_gpu(Context& context, size_t bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t available = 0, total = 0;
    cudaMemGetInfo(&available, &total);
    fail(out_of_gpu_memory(bytes, available, total));
  }
  check_cuda(status, "allocating GPU memory");
  // On the context's stream: it and the default stream do not wait for each other.
  check_cuda(cudaMemsetAsync(data, 0, bytes, context.gpu().stream), "clearing GPU memory");
  return data;
}
#endif

void* allocate(Context& context, size_t bytes) {
#ifdef CREMA_CUDA
  if (context.device() == Device::gpu) return allocate_gpu(context, bytes);
#else
  (void)context;
#endif
  void* const data = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!data) fail("out of memory: ", size_text(bytes), " requested");
  std::memset(data, 0, bytes);
  return data;
}

// Free and total bytes of the device.
std::pair<size_t, size_t> memory_of_device(Context& context) {
  size_t available = std::numeric_limits<size_t>::max(), total = available;
#ifdef CREMA_CUDA
  if (context.device() == Device::gpu)
    check_cuda(cudaMemGetInfo(&available, &total), "asking for free memory");
#else
  (void)context;
#endif
  return {available, total};
}

}  // namespace

size_t free_memory(Context& context) {
  return std::min(memory_of_device(context).first, context.memory()->left());
}

size_t total_memory(Context& context) { return memory_of_device(context).second; }

Buffer::Buffer(Context& context, size_t bytes) : device_(context.device()), bytes_(bytes) {
  if (bytes == 0) return;
  context.memory()->take(bytes);
  try {
    data_ = allocate(context, bytes);
  } catch (...) {
    context.memory()->give_back(bytes);
    throw;
  }
  account_ = context.memory();
}

Buffer::~Buffer() {
  if (!data_) return;
  account_->give_back(bytes_);
#ifdef CREMA_CUDA
  if (device_ == Device::gpu) {
    cudaFree(data_);
    return;
  }
#endif
  std::free(data_);
}

void copy_bytes(Context& context, void* to, Device to_device, const void* from, Device from_device,
                size_t bytes) {
  if (bytes == 0) return;
  if (to_device == Device::cpu && from_device == Device::cpu) {
    std::memmove(to, from, bytes);
    return;
  }
#ifdef CREMA_CUDA
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, context.gpu().stream),
             "copying memory");
  if (to_device == Device::cpu || from_device == Device::cpu) context.synchronize();
#else
  (void)context;
#endif
}

void zero_bytes(Context& context, void* at, Device device, size_t bytes) {
  if (bytes == 0) return;
#ifdef CREMA_CUDA
  if (device == Device::gpu) {
    check_cuda(cudaMemsetAsync(at, 0, bytes, context.gpu().stream), "clearing memory");
    return;
  }
#endif
  (void)context;
  (void)device;
  constexpr size_t kPiece = size_t{1} << 20;  // one core cannot saturate the memory bandwidth
  const auto pieces = static_cast<int64_t>((bytes + kPiece - 1) / kPiece);
#pragma omp parallel for schedule(static) if (pieces > 1)
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const size_t begin = piece * kPiece;
    std::memset(static_cast<char*>(at) + begin, 0, std::min(kPiece, bytes - begin));
  }
}

}  // namespace crema
