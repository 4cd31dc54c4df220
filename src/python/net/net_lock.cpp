#include "python/net/net_lock.h"

#include <pybind11/pybind11.h>

#include <utility>

#include "base/error.h"
#include "python/gil.h"

namespace crema::python {

NetLock::Hold::Hold(const std::shared_ptr<NetLock>& lock) : held_(lock) {
  held_->acquire();
  while (held_ != lock) {  // share_with() has joined their nets meanwhile
    held_->mutex_.unlock();
    held_ = lock;
    held_->acquire();
  }
}

NetLock::HoldBoth::HoldBoth(const std::shared_ptr<NetLock>& a, const std::shared_ptr<NetLock>& b) {
  const std::shared_ptr<NetLock>*one = &a, *other = &b;
  while (true) {
    first_.emplace(*one);
    if ((*other)->mutex_.try_lock()) break;
    first_.reset();
    std::swap(one, other);  // waits for the one that is taken
  }
  second_ = *other;
}

NetLock::HoldBoth::~HoldBoth() { second_->mutex_.unlock(); }

void NetLock::acquire() {
  if (!made_.here()) [[unlikely]]
    fail(
        "this net was made by another process, from which this one was forked without its threads: "
        "make the net here, or start processes with multiprocessing's \"spawn\"");
  if (mutex_.try_lock()) return;
  require(!interpreter_ends() || ends_for_this_thread(),
          "the net is used by a thread that the end of the interpreter has stopped: "
          "what is to run at exit must not wait for a daemon thread");
  const ReleaseGil release(false);
  mutex_.lock();
}

}  // namespace crema::python
