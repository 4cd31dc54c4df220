// Mean images, stored as a BlobProto of 1 x C x H x W; mean clips (C3D) of 1 x C x L x H x W.
#pragma once

#include <string>
#include <vector>

#include "tensor/shape.h"

namespace crema {

struct Mean {
  Shape shape;                // channels, height, width; of clips channels, frames, height, width
  std::vector<float> values;  // in that order
  std::vector<float> channels() const;
};

// Error names the file and the problem.
Mean read_mean(const std::string& path);
// Written atomically.
void write_mean(const Mean& mean, const std::string& path);

}  // namespace crema
