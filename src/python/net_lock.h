// NetLock: nets that share memory (those of one solver, or one net alone) are used by one thread at a
// time; another one waits. The thread that has the lock may take it again, as a callback of a running
// net does that reads blobs.
#pragma once

#include <unistd.h>

#include <mutex>

namespace crema::python {

class NetLock {
 public:
  // Call with the interpreter's lock held; it is released while waiting, because the thread that is
  // waited for may need it. Error in a process that was forked after the NetLock was made.
  class Hold {
   public:
    explicit Hold(NetLock& lock);
    ~Hold() { lock_.mutex_.unlock(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    NetLock& lock_;
  };

 private:
  std::recursive_mutex mutex_;
  const pid_t process_ = getpid();
};

}  // namespace crema::python
