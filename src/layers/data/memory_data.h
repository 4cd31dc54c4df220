// How a program hands images and labels to a MemoryData layer.
#pragma once

#include <vector>

#include "layers/layer.h"

namespace crema {

class MemoryData {
 public:
  virtual ~MemoryData() = default;
  // Images one after another in row-major order, and a label for each. Pass number p takes the
  // batch_size images from number p * batch_size on; after the last comes the first again. Error
  // when the counts do not fit. Labels may be empty where the layer has no top for them.
  virtual void set(std::vector<float> images, std::vector<float> labels) = 0;
};

// The layer's face above; Error when it is of another type.
MemoryData& memory_data(Layer& layer);

}  // namespace crema
