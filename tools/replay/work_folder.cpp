#include "tools/replay/work_folder.h"

#include <csignal>

namespace crema {
namespace {

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGHUP, SIGTERM}) sigaddset(&set, signal);
  return set;
}

}  // namespace

WorkFolder::WorkFolder(const std::string& name) : folder_(name) {
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  waiting_ = std::thread([this] { wait(); });
}

WorkFolder::~WorkFolder() {
  over_ = true;
  pthread_kill(waiting_.native_handle(), SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread)
  waiting_.join();
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

// A signal that the program's parent had ignored stays so.
void WorkFolder::wait() {
  const sigset_t set = ending_signals();
  int signal = 0;
  if (sigwait(&set, &signal) != 0 || over_) return;
  folder_.remove_now();
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  std::signal(signal, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  std::raise(signal);
}

}  // namespace crema
