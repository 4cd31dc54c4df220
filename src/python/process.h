// A forked process inherits existing objects, but none of their threads: it can neither use nor
// destroy them.
#pragma once

#include <unistd.h>

namespace crema::python {

class MadeInProcess {
 public:
  // Whether this process made it.
  bool here() const { return process_ == getpid(); }

 private:
  pid_t process_ = getpid();
};

}  // namespace crema::python
