// -weights and -weights_mode.
#pragma once

#include "net/weights/weights.h"

namespace crema {

WeightsMode weights_mode_of_flag();

// Loads every file that -weights lists, in order.
void load_weights_of_flag(Net& net);

}  // namespace crema
