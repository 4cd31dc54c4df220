// The size of the pictures in a net.
#pragma once

#include <cstdint>
#include <string>

#include "tools/project/net_text.h"
#include "tools/project/picture_survey.h"

namespace crema {

struct PictureFit {
  int64_t side = 0;   // of the squares that are stored
  bool gray = false;  // with one channel
  std::string why;
};

// For a net with Data layers: what its crop asks for, or without one, a size near that of the pictures.
PictureFit fit_pictures(const NetText& net, const PictureSizes& sizes);

// A side for a net that takes any: 32, 64 or 96 pixels, or the pictures' own if all are small squares.
int64_t free_side(const PictureSizes& sizes);

}  // namespace crema
