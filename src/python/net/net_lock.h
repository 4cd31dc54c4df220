// NetLock: nets that share memory (those of one solver, those that share_with() joined, or one net alone)
// are used by one thread at a time; another one waits. The thread that has the lock may take it again,
// as a callback of a running net does that reads blobs.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "python/process.h"

namespace crema::python {

class NetObject;

class NetLock {
 public:
  // Call with the interpreter's lock held; it is released while waiting, because the other thread
  // may need it. If the net that keeps `lock` gets another one meanwhile, that one is taken. Error
  // in a process that was forked after the NetLock was made.
  class Hold {
   public:
    explicit Hold(const std::shared_ptr<NetLock>& lock);
    ~Hold() { held_->mutex_.unlock(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    std::shared_ptr<NetLock> held_;
  };

  // The locks of two nets, which may be the same. It does not wait for one while it holds the
  // other, so threads that share nets crosswise do not deadlock.
  class HoldBoth {
   public:
    HoldBoth(const std::shared_ptr<NetLock>& a, const std::shared_ptr<NetLock>& b);
    ~HoldBoth();
    HoldBoth(const HoldBoth&) = delete;
    HoldBoth& operator=(const HoldBoth&) = delete;

   private:
    std::optional<Hold> first_;
    std::shared_ptr<NetLock> second_;
  };

  // Changed with both this lock and the interpreter's held.
  std::vector<NetObject*> nets;

 private:
  void acquire();

  std::recursive_mutex mutex_;
  const MadeInProcess made_;
};

}  // namespace crema::python
