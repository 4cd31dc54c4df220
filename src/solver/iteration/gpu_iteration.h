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
#include "solver/iteration/iteration.h"

namespace crema {

class GpuIteration : public Iteration {
 public:
  // losses: how many of the last losses are kept. capture false: kernels are launched one by one.
  GpuIteration(Parts parts, int64_t losses, bool capture);

  int64_t at_once(int64_t iteration) override;
  void begin(const Request& request) override;
  std::optional<Optimizer::Clipped> end(int64_t iteration, double rate,
                                        bool wants_clipping) override;
  bool knows_losses() const override { return false; }
  std::vector<double> losses(int64_t first, int64_t last) override;
  float loss_scale() override { return update_state().loss_scale; }
  void store(SolverState* state) override;
  void restore(const SolverState& state) override;

 private:
  // The device's state after the last update.
  DeviceUpdateState update_state();
  void set_plateau();
  Plateau plateau();
  void run_one(int64_t iteration, uint64_t pass);
  void run_several(int64_t iteration, uint64_t pass);
  void set_counters(int64_t iteration, uint64_t pass);
  void run_halting(int64_t iteration, uint64_t pass);
  void repeat_batch(int number, bool with_update, uint64_t pass);
  void forward(int number) override;
  Net::SideWork record_losses(int number) override;
  Net::SideWork early_update() override;
  void update_weights();
  // Whether an iteration updates some weights while its backward pass runs.
  bool divided() const;
  void run_sources(uint64_t pass);
  void clear_diffs();
  void repeat(Capture& capture, const std::function<void()>& work);
  DeviceUpdateState* live_state() const;
  uint64_t* live_pass() const;

  Net& net_;
  Optimizer& optimizer_;
  Rates& rates_;
  const int iter_size_;
  bool capture_;
  bool halts_ = false;  // what begin() has run waits for its update
  uint64_t rates_version_ = 0;
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
