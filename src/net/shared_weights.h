// SharedWeights: what nets on the same parameters have in common in addition to these: who reads and
// writes them, their version, and what is computed from them. The nets may run in different threads.
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
  // Held by each pass, and by what else reads parameters; several threads can hold it.
  Reading read() {
    const std::lock_guard<std::mutex> turn(turn_);
    return Reading(mutex_);
  }
  // Held by what changes parameters, or computes something from them. Waits for all of the above.
  Writing write() {
    const std::lock_guard<std::mutex> turn(turn_);
    return Writing(mutex_);
  }

  uint64_t version = 1;      // changes with the parameters
  bool halves_stale = true;  // the copies in 16 bits are older than the parameters
  FoldedStore folded;

 private:
  std::mutex turn_;  // passes that follow each other without a gap do not keep a writer waiting
  std::shared_mutex mutex_;
};

}  // namespace crema
