// The function that trains: forward, backward and the update of the weights.
#pragma once

#include <vector>

#include "exchange/c/lower.h"
#include "exchange/c/operator_emit.h"

namespace crema {

// Adds it to `program`, which has the values of `trained`. The backward pass goes down to the lowest of
// these; each is updated as soon as its gradient is known, whose memory is then free.
void add_training(Context& context, const OnnxModel& model,
                  const std::vector<CTrainedParameter>& trained, const CUpdate& update,
                  CProgram* program, CNames* names);

}  // namespace crema
