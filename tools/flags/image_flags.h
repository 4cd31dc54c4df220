// -resize, -mean, -scale and -rgb: how images become a net's input.
#pragma once

#include <cstdint>

#include "proto/data.pb.h"
#include "proto/preparation.pb.h"

namespace crema {

struct ImageSize {
  int64_t height = 0, width = 0;
};

// "256x256", width first. Error for anything else.
ImageSize resize_of_flag();

// The given ones override those of the message. Returns whether there are any.
bool change_preparation_of_flags(InputPreparation* preparation);

}  // namespace crema
