// Interface through which a program passes images and labels to a MemoryData layer.
#pragma once

#include <vector>

#include "layers/layer.h"

namespace crema {

class MemoryData {
 public:
  virtual ~MemoryData() = default;
  // Images stored contiguously in row-major order, and one label per image. Pass p takes batch_size
  // images from index p * batch_size on and wraps around at the end. Error if the counts do not
  // fit. Labels may be empty if the layer has no top for them.
  virtual void set(std::vector<float> images, std::vector<float> labels) = 0;
};

// The layer as MemoryData; Error if it has another type.
MemoryData& memory_data(Layer& layer);

}  // namespace crema
