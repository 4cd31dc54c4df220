// lr_policy "plateau": the rate falls when the mean loss has not been smaller for a number of
// iterations. One body for the solver on a CPU and for a training iteration on a GPU, where loss
// and rate never leave the device.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "kernels/optim/update_params.h"
#include "tensor/tensor.h"

namespace crema {

struct Plateau {
  static constexpr int kMostSteps = 64;
  float rates[kMostSteps + 1] = {};  // after each number of steps
  int32_t windows[kMostSteps] = {};  // iterations that each step waits
  int32_t steps = 0;                 // how many there are
  int64_t average = 1, warmup = 0;   // losses in a mean; iterations whose rate is another's
  int64_t first_loss = 0;            // iteration of the first loss that is known
  int32_t step = 0;                  // done
  int64_t last_event = 0;            // iteration of the last step, or smallest loss
  float minimum_loss = 3.402823466e38f;

  // With the mean loss of an iteration, before its update.
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

// Observes the mean of the last losses (a ring, update n at n % its size) and puts the rate of the
// update to come into numbers. On a GPU.
void observe_plateau(Context& context, Plateau* plateau, const Tensor& losses,
                     UpdateNumbers* numbers);

}  // namespace crema
