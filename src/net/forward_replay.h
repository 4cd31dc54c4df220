// ForwardReplay: the forward passes of a net on a GPU, recorded once as a CUDA graph and then
// replayed, so that the GPU does not wait for the host between kernels.
#pragma once

#include <cstdint>
#include <functional>

#include "device/capture.h"
#include "tensor/tensor.h"

namespace crema {

class ForwardReplay {
 public:
  explicit ForwardReplay(Context& context);

  // The location of the pass number in GPU memory. Kernels that need the number must read it there.
  const uint64_t* live_pass() const { return pass_.data<uint64_t>(); }
  // Runs `work`, the GPU work of pass number `pass`: the first time as it is, later by the recorded
  // graph. `generation` changes when the graph can no longer be replayed.
  void run(uint64_t generation, uint64_t pass, const std::function<void()>& work);

 private:
  Context& context_;
  Tensor pass_;  // uint64_t
  Capture capture_;
  bool warm_ = false, fails_ = false;
  uint64_t generation_ = 0, known_pass_ = 0;
};

}  // namespace crema
