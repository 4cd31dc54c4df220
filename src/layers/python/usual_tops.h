// What the tops of a native data layer look like before its files are there: for tools that put inputs
// in the place of sources (-assume).
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

// Empty for a layer that is no such one, or whose param_str is wrong.
std::vector<Shape> usual_tops_of(const LayerParameter& message);

}  // namespace crema
