// The shapes of a native data layer's tops before its files are there, for tools that replace
// sources by inputs (-assume).
#pragma once

#include <vector>

#include "tensor/shape.h"

namespace crema {

class LayerParameter;

// A native layer that is a source derives from this, too.
class UsualTops {
 public:
  virtual ~UsualTops() = default;
  // One for each top of the message; called before setup. Opens no file.
  virtual std::vector<Shape> usual_tops() const = 0;
};

// Empty for any other layer, or for a wrong param_str.
std::vector<Shape> usual_tops_of(const LayerParameter& message);

}  // namespace crema
