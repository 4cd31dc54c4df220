// The settings and the state of an update that change with every iteration. On a GPU they are in
// device memory, where the kernels that a CUDA graph replays read them.
#pragma once

#include <cstdint>

namespace crema {

// What an update's schedules decide for one iteration.
struct Hyperparameters {
  float rate = 0;
  float correction = 1;  // of Adam's moments
  float momentum = 0;
  float penalty = 0;          // weight decay that is added to the gradient
  float shrink = 0;           // decoupled weight decay
  bool divides = true;        // Adam: by the root of the second moment
  float others_momentum = 0;  // Muon: of all but its matrices
};

struct DeviceUpdateState {
  // How many updates ahead the host writes the schedules at most: enough that copying them costs
  // nothing, and a multiple of the iterations that GpuIteration puts into one launch.
  static constexpr int64_t kRates = 1024;
  Hyperparameters rates[kRates] = {};  // of update n at n % kRates
  uint64_t updates = 0;                // number of updates so far
  double norm = 0;                     // of the last gradient
  float gradient_scale = 1;            // clipping of the norm, 1 / loss scale
  float loss_scale = 1;
  int32_t finite = 1;    // 0: the gradient had infinities, the update is skipped
  int32_t diverged = 0;  // 1: a loss was not finite, all updates from then on are skipped; with
                         // UpdateLimits::skips this one alone
  int32_t good = 0;      // updates since the loss scale changed
};

// How the state changes with each update.
struct UpdateLimits {
  double clip = -1;             // largest norm; below 0: none
  bool stops = false;           // stop at a loss that is not finite
  bool skips = false;           // leave out the update of such a loss alone
  bool scales_loss = false;     // float16: the scale is halved at infinities and doubled after
  int32_t growth_after = 2000;  // that many good updates
};

// The device state that an update on a GPU reads and advances.
struct LiveUpdate {
  DeviceUpdateState* state = nullptr;
  UpdateLimits limits;
  uint64_t* pass = nullptr;  // null: advanced elsewhere
};

}  // namespace crema
