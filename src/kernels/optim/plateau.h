// lr_policy "plateau": the learning rate drops when the mean loss has not improved for a number of
// iterations. One implementation for the solver on a CPU and for a training iteration on a GPU,
// where loss and rate never leave the device.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "kernels/optim/update_state.h"
#include "tensor/tensor.h"

namespace crema {

struct Plateau {
  static constexpr int kMaxSteps = 64;
  float rates[kMaxSteps + 1] = {};  // after each number of drops
  int32_t windows[kMaxSteps] = {};  // iterations that each drop waits
  int32_t steps = 0;                // number of drops
  int64_t average = 1, warmup = 0;  // losses per mean; iterations with warmup's own rates
  int64_t first_loss = 0;           // iteration of the first known loss
  int32_t step = 0;                 // drops done
  float scale = 1;                  // of all rates, as on_divergence: ROLLBACK lowers it
  int64_t last_event = 0;           // iteration of the last drop, or smallest loss
  float minimum_loss = 3.402823466e38f;

  // Called with the mean loss of an iteration, before its update.
  CREMA_HD void observe(float loss, int64_t iteration) {
    if (iteration < warmup) return;
    if (loss < minimum_loss) {
      minimum_loss = loss;
      last_event = iteration;
    }
    if (step < steps && iteration >= last_event + windows[step]) {
      ++step;
      last_event = iteration;
    }
  }
};

// Observes the mean of the last losses (a ring, update n at n % its size) and writes the rate of
// the next update to state. On a GPU.
void observe_plateau(Context& context, Plateau* plateau, const Tensor& losses,
                     DeviceUpdateState* state);

}  // namespace crema
