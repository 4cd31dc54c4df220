#include "python/net_lock.h"

#include <pybind11/pybind11.h>

#include "base/error.h"

namespace crema::python {

NetLock::Hold::Hold(NetLock& lock) : lock_(lock) {
  if (lock.process_ != getpid()) [[unlikely]]
    fail(
        "this net was made by another process, from which this one was forked without its threads: "
        "make the net here, or start processes with multiprocessing's \"spawn\"");
  if (lock.mutex_.try_lock()) return;
  const pybind11::gil_scoped_release release;
  lock.mutex_.lock();
}

}  // namespace crema::python
