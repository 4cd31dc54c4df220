#include "device/context.h"

#include "base/error.h"
#ifdef CREMA_CUDA
#include "device/gpu.h"
#else
namespace crema {
struct Gpu {};
}  // namespace crema
#endif

namespace crema {

Context::Context(Device device, int ordinal) : device_(device), ordinal_(ordinal) {
  if (device == Device::cpu) return;
#ifdef CREMA_CUDA
  const int count = gpu_count();
  require(count > 0,
          "no usable GPU: the driver reports none (nvidia-smi tells more); without -gpu the CPU is "
          "used");
  require(ordinal >= 0 && ordinal < count, "GPU ", ordinal, " does not exist: this machine has ",
          count, count == 1 ? " GPU, number 0" : cat(" GPUs, numbers 0 to ", count - 1));
  gpu_ = std::make_unique<Gpu>(ordinal);
#else
  fail("this build of Crema has no CUDA: GPU ", ordinal,
       " cannot be used; build with a CUDA toolkit, or leave -gpu away");
#endif
}

Context::~Context() = default;

#ifdef CREMA_CUDA
void Context::aside(const std::function<void()>& work) {
  if (!gpu_ || !overlap) return work();
  gpu_->fork();
  try {
    work();
  } catch (...) {
    gpu_->back();
    throw;
  }
  gpu_->back();
}
void Context::join() {
  if (gpu_) gpu_->join();
}
void Context::tune(TuneMode mode) {
  if (gpu_) gpu_->tuning.mode = mode;
}
void Context::end_tuning() {
  if (gpu_) gpu_->tuning.release();
}
void Context::synchronize() const {
  if (gpu_) check_cuda(cudaStreamSynchronize(gpu_->stream), "waiting for the GPU");
}
#else
void Context::aside(const std::function<void()>& work) { work(); }
void Context::join() {}
void Context::tune(TuneMode) {}
void Context::end_tuning() {}
void Context::synchronize() const {}
int gpu_count() { return 0; }
#endif

}  // namespace crema
