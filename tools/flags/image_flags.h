// -resize, -mean, -scale and -rgb: how images become a net's input.
#pragma once

#include "net/picture_settings.h"
#include "tools/flags/flags_of.h"

namespace crema {

using ImageFlags = FlagsOf<"resize", "mean", "scale", "rgb">;
inline PictureSettings picture_settings(const ImageFlags& flags) {
  PictureSettings settings{flags.resize, flags.mean, {}, flags.rgb, "-"};
  if (flags.scale_given) settings.scale = static_cast<float>(flags.scale);
  return settings;
}

}  // namespace crema
