// What SIGINT and SIGHUP do to a training: -sigint_effect and -sighup_effect.
#pragma once

#include <string>

#include "solver/solver.h"

namespace crema {

// "stop", "snapshot" or "none"; Error names the flag otherwise.
Action action_named(const std::string& flag, const std::string& effect);

// While it lives, both signals only leave a note that action() finds at the next iteration. A
// second SIGINT before that ends the program at once, as without it. One object at a time.
class Signals {
 public:
  Signals(Action on_interrupt, Action on_hangup);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // What a signal since the last call asks for.
  Action action();

 private:
  Action on_interrupt_, on_hangup_;
};

}  // namespace crema
