// What a user says of how pictures become a net's input, in place of what its file says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "proto/preparation.pb.h"

namespace crema {

struct PictureSettings {
  std::string resize;          // the size that they get first, "256x256", width first
  std::string mean;            // what is subtracted: "104,117,123", or a mean file
  std::optional<float> scale;  // the factor for values after the mean
  bool rgb = false;            // the planes are R, G, B; otherwise B, G, R
  std::string prefix = {};     // precedes these names in messages: "-" for flags
};

// The settings that are there override those of the message. Returns whether there are any. Error for
// what is no size, no mean or no factor.
bool change_preparation(const PictureSettings& settings, InputPreparation* preparation);

struct PictureSize {
  int64_t height = 0, width = 0;
};
// "256x256", width first. `name`: of the setting, for the Error about anything else.
PictureSize picture_size(const std::string& text, const std::string& name);

}  // namespace crema
