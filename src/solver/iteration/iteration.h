// Iteration: forward and backward passes over iter_size batches, and the update from their gradients.
// One implementation runs on a CPU, another queues work on a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "net/net.h"
#include "solver/iteration/optimizer.h"
#include "solver/ranks/gradient_exchange.h"
#include "solver/rates/rates.h"

namespace crema {

class Iteration {
 public:
  // What it works on. All of it must outlive the iteration.
  struct Parts {
    Net& net;
    Optimizer& optimizer;
    Rates& rates;
    int iter_size = 1;
    GradientExchange* exchange = nullptr;  // null: one rank
    // Called after each forward pass, with the losses of all ranks; must only queue work on a GPU.
    std::function<void()> after_forward = {};
    // Called after each backward pass, but not in iterations that a GPU repeats.
    std::function<void()> after_backward = {};
    // Runs the forward pass of an iteration that is watched, on a CPU.
    std::function<void(int64_t iteration, uint64_t pass)> watch_forward = {};
  };
  explicit Iteration(Parts parts) : parts_(std::move(parts)) {}
  virtual ~Iteration() = default;
  Iteration(const Iteration&) = delete;
  Iteration& operator=(const Iteration&) = delete;

  // How many iterations, starting with this one, begin() does at once if asked for that many.
  virtual int64_t at_once(int64_t iteration);

  struct Request {
    int64_t iteration = 0;
    uint64_t pass = 0;   // of its first batch
    int64_t count = 1;   // iterations; more than one only where at_once() allows it
    bool halts = false;  // gradients are looked at before the update
    bool watched = false;
  };
  // Forward and backward passes; on a GPU the updates too, unless it halts.
  virtual void begin(const Request& request) = 0;
  // The update, if begin() has not done it. Returns how gradients were clipped, if they were; a GPU
  // says so only where the caller wants to know, as it takes time.
  virtual std::optional<Optimizer::Clipped> end(int64_t iteration, double rate,
                                                bool wants_clipping) = 0;

  // Whether the losses of begin() are on the host, and decide on the update. Otherwise reading them
  // waits for the device.
  virtual bool knows_losses() const = 0;
  // The loss of each iteration from first to last, the last ones that ran: the mean over its batches.
  // Error when a label was out of range.
  virtual std::vector<double> losses(int64_t first, int64_t last) = 0;
  // What gradients are multiplied with.
  virtual float loss_scale() { return 1; }

  virtual void store(SolverState*) {}
  // The run goes on at the iteration of this state. Call after Rates::restore().
  virtual void restore(const SolverState&) {}

 protected:
  // One of the batches: forward, sums over ranks, backward.
  void run_batch(int number);
  bool is_last(int number) const { return number + 1 == parts_.iter_size; }

  virtual void forward(int number) = 0;
  // Work to run during backward: records the losses, and updates the weights of the net's
  // early_parameters(). Empty: none.
  virtual Net::SideWork record_losses(int) { return {}; }
  virtual Net::SideWork early_update() { return {}; }

  Parts parts_;
};

// For the net's device. kept_losses: how many of the last losses a GPU keeps. capture: it may record
// iterations as CUDA graphs.
std::unique_ptr<Iteration> make_iteration(Iteration::Parts parts, int64_t kept_losses,
                                          bool capture);

}  // namespace crema
