// Speed of a device: its memory, matrix products in each precision, and the test from articles
// about Theano, exp of a vector 1,000 times.
#pragma once

#include <vector>

#include "device/context.h"
#include "tensor/precision.h"
#include "tools/console/program_log.h"

namespace crema {

// Measures for a few seconds and logs a line for each, in the form of Caffe's device_query.
// `precisions`: those that the device has units for.
void log_device_speed(ProgramLog& log, Context& context, const std::vector<Precision>& precisions);

}  // namespace crema
