// The layers that a joined layer stands for.
#pragma once

#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {

// A layer of this type with the joined one's parameters.
inline std::unique_ptr<Layer> joined_member(const Layer& joined, const char* type) {
  LayerParameter message = joined.message();
  message.set_type(type);
  return make_layer(message, joined.training(), joined.folder());
}

}  // namespace crema
