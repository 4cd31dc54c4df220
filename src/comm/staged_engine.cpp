#include "comm/staged_engine.h"

#include "base/error.h"
#ifdef CREMA_CUDA
#include <algorithm>

#include "device/gpu.h"
#include "device/memory.h"
#endif

namespace crema {

#ifdef CREMA_CUDA

namespace {

// Pinned, so that copies run at the bus's full speed.
class PinnedBytes {
 public:
  explicit PinnedBytes(size_t bytes) {
    check_cuda(cudaMallocHost(&data_, bytes), "allocating pinned memory");
  }
  ~PinnedBytes() { cudaFreeHost(data_); }
  PinnedBytes(const PinnedBytes&) = delete;
  PinnedBytes& operator=(const PinnedBytes&) = delete;
  char* data() const { return static_cast<char*>(data_); }

 private:
  void* data_ = nullptr;
};

// All calls are the net's thread's, but abort().
class StagedEngine final : public Engine {
 public:
  StagedEngine(std::unique_ptr<Engine> host, int rank, int ranks)
      : host_(std::move(host)), rank_(rank), ranks_(ranks) {}

  void sum(Context& context, void* values, int64_t count, Element element) override {
    const int64_t size = bytes_of(element), most = kBytes / size;
    char* const on_host = pinned(std::min(count, most) * size);
    for (int64_t first = 0; first < count; first += most) {
      const int64_t some = std::min(most, count - first);
      char* const on_gpu = static_cast<char*>(values) + first * size;
      copy_bytes(context, on_host, Device::cpu, on_gpu, Device::gpu, some * size);
      host_->sum(context, on_host, some, element);
      copy_bytes(context, on_gpu, Device::gpu, on_host, Device::cpu, some * size);
    }
  }
  // Nothing runs in parallel with it: the copies wait for the GPU.
  void begin_sum(Context& context, void* values, int64_t count, Element element) override {
    context.join();
    sum(context, values, count, element);
  }
  void wait(Context&) override {}
  void sum_part(Context& context, void* values, int64_t part, Element element) override {
    sum(context, values, part * ranks_, element);
  }
  void share_parts(Context& context, void* values, int64_t part, Element element) override {
    const int64_t size = bytes_of(element);
    const int64_t most = std::max<int64_t>(kBytes / size / ranks_, 1);
    char* const on_host = pinned(std::min(part, most) * ranks_ * size);
    for (int64_t first = 0; first < part; first += most) {
      const int64_t some = std::min(most, part - first);
      char* const on_gpu = static_cast<char*>(values) + first * size;
      copy_bytes(context, on_host + rank_ * some * size, Device::cpu, on_gpu + rank_ * part * size,
                 Device::gpu, some * size);
      host_->share_parts(context, on_host, some, element);
      check_cuda(cudaMemcpy2DAsync(on_gpu, part * size, on_host, some * size, some * size, ranks_,
                                   cudaMemcpyHostToDevice, context.gpu().stream),
                 "copying memory");
      context.synchronize();  // the host's memory is used again
    }
  }
  bool recordable() const override { return false; }
  std::string name() const override { return host_->name(); }
  void check() override { host_->check(); }
  void abort() override { host_->abort(); }

 private:
  static constexpr int64_t kBytes = int64_t{32} << 20;

  char* pinned(int64_t bytes) {
    if (bytes > bytes_) {
      pinned_.reset();
      pinned_ = std::make_unique<PinnedBytes>(bytes);
      bytes_ = bytes;
    }
    return pinned_ ? pinned_->data() : nullptr;
  }

  std::unique_ptr<Engine> host_;
  int rank_, ranks_;
  std::unique_ptr<PinnedBytes> pinned_;
  int64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<Engine> stage_on_host(std::unique_ptr<Engine> host, int rank, int ranks) {
  return std::make_unique<StagedEngine>(std::move(host), rank, ranks);
}

#else

std::unique_ptr<Engine> stage_on_host(std::unique_ptr<Engine>, int, int) {
  fail("this build of Crema has no CUDA, so no values are in a GPU's memory");
}

#endif

}  // namespace crema
