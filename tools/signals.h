// Handles SIGINT, SIGHUP and SIGTERM during training: -sigint_effect, -sighup_effect and
// -sigterm_effect.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "solver/solver.h"

namespace crema {

// "stop", "snapshot", "snapshot_stop" or "none"; Error names the flag otherwise.
Action action_named(const std::string& flag, const std::string& effect);

// During its lifetime these signals only set a flag that action() reads at the next iteration. A
// second SIGINT before that ends the program immediately, as usual. Only one object at a time,
// created before the program starts other threads.
class Signals {
 public:
  struct Effects {
    Action interrupt, hangup, terminate;
  };
  // on_arrival(signal, effect) is called at once when one of them arrives, on a separate thread, so
  // that the user knows although the iteration takes long.
  using OnArrival = std::function<void(int signal, Action effect)>;
  Signals(const Effects& effects, OnArrival on_arrival);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // The action requested by a signal since the last call; of several kinds one after the other.
  Action action();

 private:
  void wait();

  Effects effects_;
  OnArrival on_arrival_;
  std::atomic<bool> interrupted_ = false, hung_up_ = false, terminated_ = false, over_ = false;
  std::thread waiting_;
};

}  // namespace crema
