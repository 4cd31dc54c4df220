#include "tools/signals.h"

#include <csignal>

#include "base/error.h"

namespace crema {

namespace {

// The only things that a signal handler may touch.
volatile std::sig_atomic_t interrupted = 0, hung_up = 0;

void handle(int signal) {
  if (signal == SIGHUP) {
    hung_up = 1;
  } else if (interrupted) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  } else {
    interrupted = 1;
  }
}

void set_handler(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigfillset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

}  // namespace

Action action_named(const std::string& flag, const std::string& effect) {
  if (effect == "stop") return Action::stop;
  if (effect == "snapshot") return Action::snapshot;
  require(effect == "none", "-", flag, " ", effect, ": expected stop, snapshot or none");
  return Action::none;
}

Signals::Signals(Action on_interrupt, Action on_hangup)
    : on_interrupt_(on_interrupt), on_hangup_(on_hangup) {
  interrupted = 0;
  hung_up = 0;
  set_handler(SIGINT, handle);
  set_handler(SIGHUP, handle);
}

Signals::~Signals() {
  set_handler(SIGINT, SIG_DFL);
  set_handler(SIGHUP, SIG_DFL);
}

Action Signals::action() {
  if (hung_up) {
    hung_up = 0;
    return on_hangup_;
  }
  if (interrupted) {
    interrupted = 0;
    return on_interrupt_;
  }
  return Action::none;
}

}  // namespace crema
