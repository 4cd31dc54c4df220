// What to do about values that are not finite, as far as their cause can be known.
#pragma once

#include <optional>
#include <string>

#include "solver/not_finite.h"

namespace crema {

// What happened before.
struct BeforeNotFinite {
  bool updated = false;  // an update has changed the weights
  float base_lr = 0;
  std::string weights;  // the files that the net started from; "": none
  bool trains = true;   // false: a net is only used
};

// A sentence without its full stop. where: the first such values, if they are known.
std::string advice_on(Net& net, const std::optional<NotFinite>& where,
                      const BeforeNotFinite& before);

}  // namespace crema
