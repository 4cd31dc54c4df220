#include "device/context.h"

#include "base/error.h"
#include "device/communicator.h"
#include "device/device_scope.h"
#include "device/memory_account.h"
#ifdef CREMA_CUDA
#include "device/gpu.h"
#else
namespace crema {
struct Gpu {};
}  // namespace crema
#endif

namespace crema {
namespace {

void run_both(const std::function<void()>& work, const std::function<void()>& meanwhile) {
  work();
  if (meanwhile) meanwhile();
}

}  // namespace

void fail_on_cpu() { fail("a kernel that only GPUs have was started on the CPU"); }

Context::Context(Device device, int ordinal)
    : device_(device), ordinal_(ordinal), memory_(std::make_shared<MemoryAccount>()) {
  limit_threads();
  if (device == Device::cpu) return;
  const int count = gpu_count();
  if (count == 0) fail("GPU ", ordinal, " cannot be used: ", gpu_problem());
  require(ordinal >= 0 && ordinal < count, "GPU ", ordinal, " does not exist: this machine has ",
          count, count == 1 ? " GPU, number 0" : cat(" GPUs, numbers 0 to ", count - 1),
          " (`crema device_query` lists them)");
#ifdef CREMA_CUDA
  gpu_ = std::make_unique<Gpu>(ordinal, *memory_);
#endif
}

Context::~Context() = default;

int Context::rank() const { return world_ ? world_->rank : 0; }
int Context::ranks() const { return world_ ? world_->ranks : 1; }

#ifdef CREMA_CUDA
void Context::on_side_stream(int side_stream, const std::function<void()>& work,
                             const std::function<void()>& meanwhile) {
  if (!gpu_ || !overlap || side_stream == kHere) return run_both(work, meanwhile);
  gpu_->mark();
  if (meanwhile) meanwhile();
  gpu_->fork(side_stream);
  try {
    work();
  } catch (...) {
    gpu_->back(side_stream);
    throw;
  }
  gpu_->back(side_stream);
}
void Context::on_communication_stream(const std::function<void()>& work) {
  if (!gpu_) return work();
  gpu_->fork_communication();
  try {
    work();
  } catch (...) {
    gpu_->back_from_communication();
    throw;
  }
  gpu_->back_from_communication();
}
void Context::join() {
  if (gpu_) gpu_->join();
}
void Context::tune(TuneMode mode) {
  if (gpu_) gpu_->tuning.mode = mode;
}
void Context::end_tuning() {
  if (!gpu_) return;
  gpu_->tuning.release();
  const std::string spent = gpu_->tuning.report();
  if (!spent.empty()) log().info(spent);
}
TuningOff::TuningOff(Context& context) : context_(context) {
  if (context.device() == Device::gpu) before_ = context.gpu().tuning.mode;
  context.tune(TuneMode::off);
}
void Context::synchronize() const {
  if (gpu_) check_cuda(cudaStreamSynchronize(gpu_->stream), "waiting for the GPU");
}
#else
void Context::on_side_stream(int, const std::function<void()>& work,
                             const std::function<void()>& meanwhile) {
  run_both(work, meanwhile);
}
void Context::on_communication_stream(const std::function<void()>& work) { work(); }
void Context::join() {}
void Context::tune(TuneMode) {}
void Context::end_tuning() {}
TuningOff::TuningOff(Context& context) : context_(context) {}
void Context::synchronize() const {}
int gpu_count() { return 0; }
std::string gpu_problem() {
  return "this build has no GPU support (it was made without a CUDA toolkit)";
}
#endif

TuningOff::~TuningOff() { context_.tune(before_); }

}  // namespace crema
