// -resize, -mean and -scale: how images become a net's input.
#pragma once

#include <cstdint>

#include "proto/data.pb.h"

namespace crema {

struct ImageSize {
  int64_t height = 0, width = 0;
};

// "256x256", width first. Error for anything else.
ImageSize resize_of_flag();

// -mean and -scale, as far as they are given, in place of what the message has.
void set_mean_and_scale_of_flags(TransformationParameter* transform);

}  // namespace crema
