#include "device/upload.h"

#include <cstring>

#include "base/error.h"
#ifdef CREMA_CUDA
#include "device/gpu.h"
#endif

namespace crema {

#ifdef CREMA_CUDA

struct Upload::Pinned {
  Context& context;
  void* data = nullptr;
  size_t bytes = 0;
  cudaEvent_t copied = nullptr;

  explicit Pinned(Context& of) : context(of) {
    check_cuda(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming), "creating an event");
  }
  ~Pinned() {
    cudaEventSynchronize(copied);
    cudaFreeHost(data);
    cudaEventDestroy(copied);
  }
  void* room(size_t wanted) {
    check_cuda(cudaEventSynchronize(copied), "waiting for a copy");
    if (wanted <= bytes) return data;
    cudaFreeHost(data);
    data = nullptr;
    bytes = 0;
    check_cuda(cudaMallocHost(&data, wanted), "allocating pinned memory");
    bytes = wanted;
    return data;
  }
};

Upload::Upload(Context& context) : pinned_(std::make_unique<Pinned>(context)) {}

void Upload::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  const cudaStream_t stream = pinned_->context.gpu().stream;
  void* const data = pinned_->room(bytes);
  std::memcpy(data, from, bytes);
  check_cuda(cudaMemcpyAsync(to, data, bytes, cudaMemcpyHostToDevice, stream), "copying memory");
  check_cuda(cudaEventRecord(pinned_->copied, stream), "recording an event");
}

#else

struct Upload::Pinned {};
Upload::Upload(Context&) { fail("this program was built without CUDA"); }
void Upload::copy(void*, const void*, size_t) {}

#endif

Upload::~Upload() = default;
Upload::Upload(Upload&&) noexcept = default;
Upload& Upload::operator=(Upload&&) noexcept = default;

}  // namespace crema
