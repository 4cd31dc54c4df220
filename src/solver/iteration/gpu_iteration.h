// GpuIteration: a training iteration (forward and backward of iter_size batches, update) on a GPU.
// What changes from one iteration to the next (learning rate, pass number, loss scale) is in device
// memory, and losses stay there until they are asked for. So iterations are recorded as CUDA graphs
// and replayed, of small nets several at once, and the host waits only for data.
#pragma once

#include <functional>
#include <optional>

#include "device/capture.h"
#include "kernels/optim/plateau.h"
#include "kernels/optim/update.h"
#include "net/net.h"
#include "solver/iteration/optimizer.h"
#include "solver/ranks/gradient_exchange.h"
#include "solver/rates/rates.h"

namespace crema {

class GpuIteration {
 public:
  // losses: how many of the last losses are kept. capture false: kernels are launched one by one.
  // Net, optimizer and rates must outlive this.
  GpuIteration(Net& net, Optimizer& optimizer, int iter_size, int64_t losses, bool capture,
               Rates& rates);

  // Runs `count` iterations starting with number `iteration`; their first batch is pass number
  // `pass`.
  void run(int64_t iteration, uint64_t pass, int64_t count = 1);
  // How many iterations, starting with this one, run() launches at once if asked for that many.
  int64_t at_once(int64_t iteration);
  // One iteration in two parts, never captured.
  void forward_backward(int64_t iteration, uint64_t pass);
  void update();

  // The loss of each iteration from first to last: the mean over its batches. They must be among
  // the last ones kept. Waits for the device; Error when a label was out of range.
  std::vector<float> losses(int64_t first, int64_t last);
  // The device's state after the last update.
  DeviceUpdateState update_state();
  // Continues with a loss scale from a snapshot.
  void restore_loss_scale(float scale, int32_t good);
  // Call when iterations do not go on where they were, or a divergence is over.
  void forget_counters() { known_iteration_ = -1; }
  // The run goes on at an iteration, with other rates. losses: of the iterations before it, oldest first.
  void restart(int64_t iteration, const std::vector<float>& losses);
  // Several ranks train together: losses and gradients are summed over them. Must outlive this.
  void set_exchange(GradientExchange& exchange, bool recordable) {
    exchange_ = &exchange;
    capture_ = capture_ && recordable;
  }
  // Queued after each forward pass, and recorded with it; where several ranks train, after the sums of
  // their losses.
  void set_after_forward(std::function<void()> work) { after_forward_ = std::move(work); }

 private:
  void set_plateau();
  Plateau plateau();
  void run_one(int64_t iteration, uint64_t pass);
  void run_several(int64_t iteration, uint64_t pass);
  void set_counters(int64_t iteration, uint64_t pass);
  void batch(int number, bool with_update, uint64_t pass);
  void queue_batch(int number, bool divided = false);
  void update_weights(bool divided = false);
  // Whether an iteration updates some weights while its backward pass runs.
  bool divided() const;
  void begin(uint64_t pass);
  void clear_diffs();
  void repeat(Capture& capture, const std::function<void()>& work);
  DeviceUpdateState* live_state() const;
  uint64_t* live_pass() const;

  Net& net_;
  Optimizer& optimizer_;
  GradientExchange* exchange_ = nullptr;  // null: one rank
  int iter_size_;
  bool capture_;
  Rates& rates_;
  uint64_t rates_version_ = 0;
  std::function<void()> after_forward_;
  UpdateLimits limits_;
  Tensor state_, pass_, losses_;
  Tensor plateau_;  // empty where the rate depends on the iteration alone
  Capture first_, further_, last_, update_, several_;
  std::optional<bool> small_;     // whether this is a small net, whose iterations are short
  bool divides_ = false;          // Optimizer::prepare_queued()
  bool warm_ = false;             // an iteration has run: everything is loaded
  uint64_t generation_ = 0;       // of the net's plan that ran
  int64_t known_iteration_ = -1;  // where the device's counters are
  int64_t rates_until_ = 0;
  uint64_t known_pass_ = 0;
};

}  // namespace crema
