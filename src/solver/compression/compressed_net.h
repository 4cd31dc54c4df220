// What `teacher` and `quantize` in a solver's file make of the net that it trains.
#pragma once

#include "net/net.h"
#include "net/prototxt/prototxt.h"

namespace crema {

// For programs that measure such a net without training it: the teacher's weights are not loaded. Makes the text
// that of the layers of options.state; options.where then gives their positions, and options.frozen names the
// teacher's layers, too. Error, with the position, for wrong fields.
void add_compression(Context& context, const SolverFile& file, NetFile* net, NetOptions* options);

}  // namespace crema
