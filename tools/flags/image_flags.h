// -resize, -mean, -scale and -rgb: how images become a net's input.
#pragma once

#include <cstdint>

#include "proto/data.pb.h"
#include "proto/preparation.pb.h"
#include "tools/flags/flags_of.h"

namespace crema {

struct ImageSize {
  int64_t height = 0, width = 0;
};

// "256x256", width first. Error for anything else.
ImageSize resize_of_flag(const std::string& resize);

// The given ones override those of the message. Returns whether there are any.
using ImageFlags = FlagsOf<"resize", "mean", "scale", "rgb">;
bool change_preparation(const ImageFlags& flags, InputPreparation* preparation);

}  // namespace crema
