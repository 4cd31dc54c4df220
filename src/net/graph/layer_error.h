// LayerError: an error in a layer of a net, for programs that show more about the layer's type.
#pragma once

#include <string>
#include <utility>

#include "base/exceptions.h"

namespace crema {

class LayerError : public Error {
 public:
  LayerError(const std::string& message, std::string layer, std::string type)
      : Error(message), layer_(std::move(layer)), type_(std::move(type)) {}

  const std::string& layer() const { return layer_; }  // its name, which the message has
  const std::string& type() const { return type_; }

 private:
  std::string layer_, type_;
};

}  // namespace crema
