// What the tops of a net's sources look like, as far as their own fields and the layers that read
// them tell.
#pragma once

#include <optional>
#include <string>

#include "proto/net.pb.h"
#include "tensor/shape.h"

namespace crema {

// A source's top, in a net without the layers of other phases.
struct SourceTop {
  const NetParameter& net;
  const LayerParameter& layer;
  int top = 0;
  int batch = 0;  // samples, in place of what the layer says; 0: what it says

  const std::string& name() const { return layer.top(top); }
  std::optional<int64_t> samples() const;  // none: the layer states no batch_size
};

// What it will be: as input_param states; else the images, labels or boxes of such a source. Labels
// are what losses and accuracies read as such, and the second top of image sources. None: nothing
// tells.
std::optional<Shape> usual_shape(const SourceTop& top);

// For a message: "300x5", a shape such as those who read the top expect; "SHAPE": no idea.
std::string likely_shape(const SourceTop& top);

}  // namespace crema
