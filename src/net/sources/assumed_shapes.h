// The shapes that a person names for the tops of sources that are not at hand.
#pragma once

#include <map>
#include <string>

#include "tensor/shape.h"

namespace crema {

struct AssumedShapes {
  bool defaults = false;                // `default`: those of usual_shape for all others
  std::map<std::string, Shape> of_top;  // by the top's name
};

// "data=64x3x224x224,label=64", "default" or "default,im_info=1x3"; "" gives none. `what` names the
// setting in errors: "-assume".
AssumedShapes parse_assumed_shapes(const std::string& text, const std::string& what);

}  // namespace crema
