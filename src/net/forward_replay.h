// ForwardReplay: the forward passes of a net on a GPU, recorded once as a CUDA graph and then
// replayed, so that the GPU does not wait for the host between kernels.
#pragma once

#include <cstdint>
#include <functional>

#include "tensor/tensor.h"

namespace crema {

class Plan;  // net/plan/plan.h

class ForwardReplay {
 public:
  explicit ForwardReplay(Context& context);

  // The location of the pass number in GPU memory. Kernels that need the number must read it there.
  const uint64_t* live_pass() const { return pass_.data<uint64_t>(); }
  // Runs `work`, the GPU work of pass number `pass` of this plan: the first time as it is, later by
  // the plan's recording.
  void run(Plan& plan, uint64_t pass, const std::function<void()>& work);

 private:
  Context& context_;
  Tensor pass_;              // uint64_t
  uint64_t known_pass_ = 0;  // its value once all queued work is done
  bool records_ = true;      // false: the device cannot record this net
};

}  // namespace crema
