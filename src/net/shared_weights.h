// SharedWeights: the state that nets on the same parameters share in addition to these: a lock, a
// version, and copies computed from them. The nets may run in different threads.
#pragma once

#include <cstdint>
#include <mutex>
#include <shared_mutex>

#include "net/plan/folded.h"

namespace crema {

class SharedWeights {
 public:
  using Reading = std::shared_lock<std::shared_mutex>;
  using Writing = std::unique_lock<std::shared_mutex>;
  // Held by passes and other readers of parameters. Several threads can hold it at the same time.
  Reading read() {
    const std::lock_guard<std::mutex> turn(turn_);
    return Reading(mutex_);
  }
  // Held by code that changes parameters or renews copies of them. Waits for all readers.
  Writing write() {
    const std::lock_guard<std::mutex> turn(turn_);
    return Writing(mutex_);
  }

  uint64_t version = 1;      // changes with the parameters
  bool halves_stale = true;  // the copies in 16 bits are older than the parameters
  FoldedStore folded;

 private:
  std::mutex turn_;  // keeps passes in a row from starving a writer
  std::shared_mutex mutex_;
};

}  // namespace crema
