#include "net/forward_replay.h"

#include "base/error.h"
#include "device/memory.h"
#include "kernels/optim/iteration.h"

namespace crema {

ForwardReplay::ForwardReplay(Context& context)
    : context_(context), pass_(context, Shape{8}, DType::u8) {}

void ForwardReplay::run(uint64_t generation, uint64_t pass, const std::function<void()>& work) {
  if (generation != generation_) {
    capture_.clear();
    warm_ = false;
    generation_ = generation;
  }
  if (pass != known_pass_)
    copy_bytes(context_, pass_.raw(), Device::gpu, &pass, Device::cpu, sizeof pass);
  known_pass_ = pass + 1;
  const auto whole = [&] {
    work();
    next_pass(context_, pass_.data<uint64_t>());
  };
  if (warm_ && !fails_ && !capture_.recorded()) {
    try {
      capture_.record(context_, whole);
    } catch (const DeviceLost&) {
      throw;
    } catch (const Error& error) {
      fails_ = true;  // nothing of it has been executed
      context_.log().warning(
          cat("forward passes of this net cannot be recorded as a CUDA graph, so their kernels are "
              "launched one by one: ",
              error.what()));
    }
  }
  warm_ = true;
  capture_.recorded() ? capture_.launch(context_) : whole();
}

}  // namespace crema
