#include "net/forward_replay.h"

#include "base/error.h"
#include "device/memory.h"
#include "kernels/optim/iteration.h"
#include "net/plan/plan.h"

namespace crema {

ForwardReplay::ForwardReplay(Context& context)
    : context_(context), pass_(context, Shape{8}, DType::u8) {}

void ForwardReplay::run(Plan& plan, uint64_t pass, const std::function<void()>& work) {
  Plan::Recording& recording = plan.recording;
  if (plan.generation != recording.generation) {
    recording.graph.clear();
    recording.warm = false;
    recording.generation = plan.generation;
  }
  if (pass != known_pass_)
    copy_bytes(context_, pass_.raw(), Device::gpu, &pass, Device::cpu, sizeof pass);
  known_pass_ = pass + 1;
  const auto whole = [&] {
    work();
    next_pass(context_, pass_.data<uint64_t>());
  };
  if (recording.warm && records_ && !recording.graph.recorded()) {
    try {
      recording.graph.record(context_, whole);
    } catch (const DeviceLost&) {
      throw;
    } catch (const Error& error) {
      records_ = false;  // nothing of it has been executed
      context_.log().warning(
          cat("forward passes of this net cannot be recorded as a CUDA graph, so their kernels are "
              "launched one by one: ",
              error.what()));
    }
  }
  recording.warm = true;
  recording.graph.recorded() ? recording.graph.launch(context_) : whole();
}

}  // namespace crema
