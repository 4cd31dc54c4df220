// The layers of a net as objects of their own: copies and swaps of layers visit each of their fields.
#pragma once

#include <memory>
#include <vector>

#include "proto/net.pb.h"

namespace crema {

// Takes them out of the net, which has none then; mutable_layer()->AddAllocated() gives one back.
std::vector<std::unique_ptr<LayerParameter>> take_layers(NetParameter* net);

}  // namespace crema
