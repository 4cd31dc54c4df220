// GpuIteration: a training iteration (forward and backward of iter_size batches, update) on a GPU.
// What changes from one iteration to the next (learning rate, pass number, loss scale) lies in the
// device's memory, and losses are kept there until somebody asks: so iterations are recorded as
// CUDA graphs and repeated, of small nets several at once, and the host waits for nothing but data.
#pragma once

#include <functional>
#include <optional>

#include "device/capture.h"
#include "kernels/optim/plateau.h"
#include "kernels/optim/update.h"
#include "net/net.h"
#include "solver/optimizer.h"

namespace crema {

class GpuIteration {
 public:
  // rates(first, count): the numbers of iterations [first, first + count). losses: how many
  // of the last losses are kept. capture false: kernels are launched one by one. Net and optimizer
  // must outlive this.
  GpuIteration(Net& net, Optimizer& optimizer, int iter_size, int64_t losses, bool capture,
               std::function<std::vector<UpdateRates>(int64_t first, int64_t count)> rates);

  // `count` iterations from number `iteration` on; their first batch is pass number `pass`.
  void run(int64_t iteration, uint64_t pass, int64_t count = 1);
  // How many iterations from this one on run() starts at once, when it is asked for so many.
  int64_t at_once(int64_t iteration);
  // The same in two parts, never captured.
  void forward_backward(int64_t iteration, uint64_t pass);
  void update();

  // Of the iterations from first to last, which must be among the last ones: the mean over the
  // batches of each. Waits for the device; Error when a label was out of range.
  std::vector<float> losses(int64_t first, int64_t last);
  // Of the last update.
  UpdateNumbers numbers();
  // Goes on with a loss scale that a snapshot stored.
  void restore_loss_scale(float scale, int32_t good);
  // The rates of iterations to come have changed.
  void forget_rates() { rates_until_ = 0; }
  // From now on the learning rate follows the losses; and how far that has come.
  void set_plateau(const Plateau& plateau);
  Plateau plateau();
  // The losses of the iterations before `iteration`, oldest first.
  void set_losses(int64_t iteration, const std::vector<float>& losses);

 private:
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
  UpdateNumbers* live_numbers() const;
  uint64_t* live_pass() const;

  Net& net_;
  Optimizer& optimizer_;
  int iter_size_;
  bool capture_;
  std::function<std::vector<UpdateRates>(int64_t, int64_t)> rates_;
  UpdateLimits limits_;
  Tensor numbers_, pass_, losses_;
  Tensor plateau_;  // empty where the rate follows the iteration alone
  Capture first_, further_, update_, several_;
  std::optional<bool> small_;     // a net whose iterations are short
  bool divides_ = false;          // Optimizer::prepare_queued()
  bool warm_ = false;             // an iteration has run: everything is loaded
  uint64_t generation_ = 0;       // of the net's plan that ran
  int64_t known_iteration_ = -1;  // that the device's counters are at
  int64_t rates_until_ = 0;
  uint64_t known_pass_ = 0;
};

}  // namespace crema
