// Threads of this library's own that no signal interrupts: signals are for one thread of the program
// (tools/signals.h).
#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace crema {

template <typename Work>
std::thread background_thread(Work work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // which a new thread inherits
  std::thread thread(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace crema
