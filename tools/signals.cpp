#include "tools/signals.h"

#include <csignal>
#include <utility>

#include "base/error.h"

namespace crema {

namespace {

sigset_t taken_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGHUP, SIGTERM}) sigaddset(&set, signal);
  return set;
}

// Ends the program by the signal, as if it had not been handled.
void die_by(int signal) {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  std::signal(signal, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  std::raise(signal);
}

}  // namespace

Action action_named(const std::string& flag, const std::string& effect) {
  if (effect == "stop") return Action::stop;
  if (effect == "snapshot") return Action::snapshot;
  if (effect == "snapshot_stop") return Action::snapshot_stop;
  require(effect == "none", "-", flag, " ", effect,
          ": expected stop, snapshot, snapshot_stop or none");
  return Action::none;
}

// No signal is ever delivered to a computing thread. The code that oneDNN 2.6 (Debian 12's)
// generates uses the stack pointer as one more register. It then points into a buffer, even on the
// heap, and the frame of any signal handler would be written there. So the signals are blocked,
// which threads inherit from the one that starts them, and one thread waits for them.
Signals::Signals(const Effects& effects, OnArrival on_arrival)
    : effects_(effects), on_arrival_(std::move(on_arrival)) {
  const sigset_t set = taken_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  waiting_ = std::thread([this] { wait(); });
}

Signals::~Signals() {
  over_ = true;
  pthread_kill(waiting_.native_handle(), SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread)
  waiting_.join();
  const sigset_t set = taken_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void Signals::wait() {
  const sigset_t set = taken_signals();
  for (int signal = 0; sigwait(&set, &signal) == 0 && !over_;) {
    // Told first: the training thread may end the program once the flag is set.
    if (signal == SIGHUP) {
      on_arrival_(signal, effects_.hangup);
      hung_up_ = true;
    } else if (signal == SIGTERM) {
      on_arrival_(signal, effects_.terminate);
      terminated_ = true;
    } else if (interrupted_.exchange(true)) {
      die_by(signal);
    } else {
      on_arrival_(signal, effects_.interrupt);
    }
  }
}

Action Signals::action() {
  if (terminated_.exchange(false)) return effects_.terminate;
  if (hung_up_.exchange(false)) return effects_.hangup;
  if (interrupted_.exchange(false)) return effects_.interrupt;
  return Action::none;
}

}  // namespace crema
