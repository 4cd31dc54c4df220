#include "device/memory.h"

#include <cstdlib>
#include <cstring>

#include "base/error.h"
#ifdef CREMA_CUDA
#include "device/gpu.h"
#endif

namespace crema {
namespace {

double mib(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

#ifdef CREMA_CUDA
void* allocate_gpu(Context& context, size_t bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t available = 0, total = 0;
    cudaMemGetInfo(&available, &total);
    fail("out of GPU memory: ", mib(bytes), " MiB wanted, ", mib(available), " of ", mib(total),
         " MiB free; a smaller batch_size (with iter_size to make up for it) needs less");
  }
  check_cuda(status, "allocating GPU memory");
  // On the context's stream: the default stream does not wait for it, nor it for the default
  // stream.
  check_cuda(cudaMemsetAsync(data, 0, bytes, context.gpu().stream), "clearing GPU memory");
  return data;
}
#endif

}  // namespace

size_t free_memory(Context& context) {
  size_t available = 0;
#ifdef CREMA_CUDA
  size_t total = 0;
  if (context.device() == Device::gpu)
    check_cuda(cudaMemGetInfo(&available, &total), "asking for free memory");
#else
  (void)context;
#endif
  return available;
}

Buffer::Buffer(Context& context, size_t bytes)
    : device_(context.device()), ordinal_(context.ordinal()), bytes_(bytes) {
  if (bytes == 0) return;
#ifdef CREMA_CUDA
  if (device_ == Device::gpu) {
    data_ = allocate_gpu(context, bytes);
    return;
  }
#endif
  data_ = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  require(data_ != nullptr, "out of memory: ", mib(bytes), " MiB wanted");
  std::memset(data_, 0, bytes);
}

Buffer::~Buffer() {
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
  std::memset(at, 0, bytes);
}

}  // namespace crema
