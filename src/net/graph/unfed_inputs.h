// Rejects Input layers that no program fills.
#pragma once

#include <functional>
#include <string>

#include "proto/net.pb.h"

namespace crema {

// Error, with its position, for the first Input layer included in `state`: its tops would stay
// zero. For verbs that need real data: training, feature extraction. `net` is the one passed to a
// Net.
void refuse_unfed_inputs(const NetParameter& net, const NetState& state,
                         const std::function<std::string(int layer)>& where);

}  // namespace crema
