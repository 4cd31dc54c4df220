#include "device/staging.h"

#include <cstring>

#include "base/error.h"
#ifdef CREMA_CUDA
#include <atomic>

#include "device/gpu.h"
#include "device/gpu_errors.h"
#endif

namespace crema {

#ifdef CREMA_CUDA
namespace {

class GpuStage : public BatchStage {
 public:
  explicit GpuStage(Context& context) : account_(context.memory()) {
    int least = 0, greatest = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
    check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, least),
               "creating a stream");
    for (Slot& slot : slots_)
      check_cuda(cudaEventCreateWithFlags(&slot.read, cudaEventDisableTiming), "creating an event");
  }
  ~GpuStage() override {
    if (stream_) cudaStreamSynchronize(stream_);
    for (Slot& slot : slots_) {
      if (slot.read) {
        cudaEventSynchronize(slot.read);
        cudaEventDestroy(slot.read);
      }
      free_memory_of(slot);
    }
    if (stream_) cudaStreamDestroy(stream_);
  }

  uint8_t* room(int number, size_t bytes) override {
    Slot& slot = slots_[number];
    if (bytes > slot.bytes) {
      // Not a Buffer, which is cleared on the net's stream: that may be recording a CUDA graph.
      check_cuda(cudaEventSynchronize(slot.read), "waiting for a batch to be read");
      // Batches of images of many sizes grow by little, again and again.
      if (slot.data) bytes += bytes / 8;
      free_memory_of(slot);
      account_->take(bytes);
      const cudaError_t status = cudaMalloc(&slot.data, bytes);
      if (status != cudaSuccess) {
        account_->give_back(bytes);
        slot.data = nullptr;
        cudaGetLastError();
        size_t available = 0, total = 0;
        cudaMemGetInfo(&available, &total);
        if (status == cudaErrorMemoryAllocation) fail(out_of_gpu_memory(bytes, available, total));
        check_cuda(status, "allocating GPU memory");
      }
      slot.bytes = bytes;
      bytes_ += bytes;
    }
    check_cuda(cudaStreamWaitEvent(stream_, slot.read, 0), "waiting for a batch to be read");
    return static_cast<uint8_t*>(slot.data);
  }

  void copy(void* to, const void* from, size_t bytes) override {
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "copying memory");
  }

  void finish() override { check_cuda(cudaStreamSynchronize(stream_), "making a batch"); }

  void release(Context& context, int slot) override {
    check_cuda(cudaEventRecord(slots_[slot].read, context.gpu().stream), "noting a batch as read");
  }

  void* stream() const override { return stream_; }

  bool is_idle(Context& context) const override {
    const cudaError_t status = cudaStreamQuery(context.gpu().stream);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();  // it is no error
      return false;
    }
    check_cuda(status, "asking whether the GPU is idle");
    return true;
  }

  size_t bytes() const override { return bytes_; }

 private:
  struct Slot {
    void* data = nullptr;
    size_t bytes = 0;
    cudaEvent_t read = nullptr;
  };
  void free_memory_of(Slot& slot) {
    if (!slot.data) return;
    cudaFree(slot.data);
    account_->give_back(slot.bytes);
    bytes_ -= slot.bytes;
    slot.data = nullptr;
    slot.bytes = 0;
  }

  std::shared_ptr<MemoryAccount> account_;
  cudaStream_t stream_ = nullptr;
  Slot slots_[kSlots];
  std::atomic<size_t> bytes_ = 0;
};

}  // namespace

std::unique_ptr<BatchStage> open_batch_stage(Context& context) {
  return std::make_unique<GpuStage>(context);
}

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
std::unique_ptr<BatchStage> open_batch_stage(Context&) {
  fail("this program was built without CUDA");
}
#endif

Upload::~Upload() = default;
Upload::Upload(Upload&&) noexcept = default;
Upload& Upload::operator=(Upload&&) noexcept = default;

}  // namespace crema
