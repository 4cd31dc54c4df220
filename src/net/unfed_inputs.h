// Input layers where no program fills them.
#pragma once

#include <functional>
#include <string>

#include "proto/net.pb.h"

namespace crema {

// Error, with its position, for the first Input layer that takes part in `state`: its tops would
// stay zero. For what needs real data: training, features. `net` as it is given to a Net.
void refuse_unfed_inputs(const NetParameter& net, const NetState& state,
                         const std::function<std::string(int layer)>& where);

}  // namespace crema
