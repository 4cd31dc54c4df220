// Epochs: what a training with epoch_log measures between two ends of an epoch.
#pragma once

#include <chrono>
#include <vector>

#include "net/net.h"
#include "solver/events/events.h"
#include "solver/fields/epoch_fields.h"

namespace crema {

class Epochs {
 public:
  // An update reads `iter_size` batches of `net`, which must outlive this. `max_iter` says how many
  // epochs there will be. `length` must be known.
  Epochs(Net& net, const EpochLength& length, int iter_size, int64_t max_iter);

  // Whether an epoch ends with this many updates: with the first one that completes it.
  bool ends_after(int64_t updates) const;

  // Adds the net's results to the means, after each pass; on a GPU queued, so that a CUDA graph can
  // record it.
  void add();
  // An epoch begins; the clock starts.
  void begin(int64_t updates);
  // The epoch that has ended after `updates`, with the results of a test after it. Waits for the
  // device; the next epoch begins.
  event::Epoch end(int64_t updates, const std::vector<OutputValue>& test);

 private:
  using Clock = std::chrono::steady_clock;
  struct Mean {
    std::string blob;
    float loss_weight;
    Tensor sum;  // none: the output has several values
    PartsRule parts = PartsRule::mean;
    Tensor count = {};  // of PartsRule::counted: what `sum` is divided by, instead of the passes
  };

  Net& net_;
  EpochLength length_;
  int64_t iter_size_, epochs_;
  std::vector<Mean> means_;  // of the outputs
  int64_t begun_ = 0;        // the update that the means begin with
  Clock::time_point begun_at_;
};

}  // namespace crema
