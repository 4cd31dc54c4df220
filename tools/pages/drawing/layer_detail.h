// The fields of a layer that a reader of a net needs first.
#pragma once

#include <string>

#include "proto/layer.pb.h"

namespace crema {

// "64 outputs, 7x7, stride 2, pad 3", "max, 3x3, stride 2", "0.5", "prod"; "": nothing of that.
std::string layer_detail(const LayerParameter& layer);

}  // namespace crema
