// The names of the classes that a run tells apart: those of its training data.
#pragma once

#include "data/databases/class_names.h"
#include "net/net.h"

namespace crema {

// None, and a warning, if there are not as many as the loss has scores.
ClassNames class_names_of_run(const Net& net, Log& log);

}  // namespace crema
