// The shapes of the tops of a net's sources, as far as their own fields and the layers that read
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
  int batch = 0;  // samples, overriding the layer's own; 0: the layer's own

  const std::string& name() const { return layer.top(top); }
  std::optional<int64_t> samples() const;  // none: the layer states no batch_size
};

// The shape it will have: from input_param, otherwise that of images, labels or boxes from such a
// source. Labels are blobs that losses and accuracies read as such, and the second top of image
// sources. None: unknown.
std::optional<Shape> usual_shape(const SourceTop& top);

// The same if it follows from shapes or sizes in the layer's fields; only the number of channels
// may be guessed.
std::optional<Shape> stated_image(const SourceTop& top);

// For a message: "300x5", a shape such as the readers of the top expect; "SHAPE": unknown.
std::string likely_shape(const SourceTop& top);

}  // namespace crema
