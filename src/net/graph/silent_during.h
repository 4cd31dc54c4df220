// SilentDuring: drops a context's log lines while one of these is alive.
#pragma once

#include "device/context.h"

namespace crema {

class SilentDuring {
 public:
  explicit SilentDuring(Context& context) : context_(context), log_(context.log()) {
    context.set_log(silent_log());
  }
  ~SilentDuring() { context_.set_log(log_); }
  SilentDuring(const SilentDuring&) = delete;
  SilentDuring& operator=(const SilentDuring&) = delete;

 private:
  Context& context_;
  Log& log_;
};

}  // namespace crema
