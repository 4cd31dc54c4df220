// LayerError: a layer of a net that cannot be made, for programs that show more than the message.
#pragma once

#include <string>
#include <utility>

#include "base/exceptions.h"

namespace crema {

class LayerError : public Error {
 public:
  LayerError(const std::string& text, int layer, std::string name, std::string type)
      : Error(text), layer(layer), name(std::move(name)), type(std::move(type)) {}

  int layer;             // of the NetParameter that the graph is built of
  std::string name;      // of the layer, which the message has
  std::string type;      // of the layer
  std::string missing;   // a bottom that no layer above makes; "": something else is wrong
  bool has_data = true;  // some layer above makes a blob
};

}  // namespace crema
