// TuningOff: while one lives, kernels are chosen without timing candidates.
#pragma once

#include "device/context.h"

namespace crema {

class TuningOff {
 public:
  explicit TuningOff(Context& context);
  ~TuningOff();
  TuningOff(const TuningOff&) = delete;
  TuningOff& operator=(const TuningOff&) = delete;

 private:
  Context& context_;
  TuneMode before_ = TuneMode::off;
};

}  // namespace crema
