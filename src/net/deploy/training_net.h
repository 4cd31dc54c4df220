// Makes a net that a program fills from a training net, to train it elsewhere.
#pragma once

#include "net/deploy/deploy.h"

namespace crema {

// `net`, as for deploy(), with an Input layer in place of each top of its sources that a layer reads:
// data and labels. options.batch 0: the batch that it has. Sets `net` and `origins` of the result. Error,
// with a position, if the shape of an input is unknown.
DeployedNet training_net(const NetParameter& net, DeployOptions options);

}  // namespace crema
