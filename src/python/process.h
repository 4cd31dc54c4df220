// A forked process has what was made before, but none of its threads: it can neither be used nor destroyed.
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
