// How the values of a net's parameters and of their gradients are distributed.
#pragma once

#include <vector>

#include "net/net.h"
#include "solver/events/events.h"

namespace crema {

// The histogram of the finite values, in buckets of equal width. count is 0 if there are none.
event::Histogram histogram_of(const std::vector<float>& values);

// One of each parameter, "weights/LAYER/INDEX", and of each gradient there is, "gradients/...", times
// gradient_scale: what makes the gradient of the loss of what backward() has left.
std::vector<event::Histogram> parameter_histograms(Net& net, float gradient_scale);

}  // namespace crema
