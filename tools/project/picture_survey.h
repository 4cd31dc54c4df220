// What is known of picture files before they are converted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/sha256.h"

namespace crema {

struct PictureFacts {
  std::string path;
  int32_t label = 0;
  int64_t height = 0, width = 0;
  bool gray = false;        // no pixel has a colour
  std::string problem;      // why it cannot be read; "": it can
  Sha256::Digest pixels{};  // equal for pictures with equal pixels
};

// Reads the pictures on several threads; those that cannot be read get a problem. Each begins with `path`
// and `label`. Of many, log lines say how far it is.
void read_pictures_facts(const std::string& root, std::vector<PictureFacts>* pictures, Log& log);

struct PictureSizes {
  int64_t least_height = 0, least_width = 0, most_height = 0, most_width = 0;
  int64_t median_side = 0;  // of the shorter sides
  bool all_equal = true, gray = true;
};
// Of those without a problem; there must be one.
PictureSizes sizes_of(const std::vector<PictureFacts>& pictures);

// "28 x 28", or "40 x 30 to 640 x 480 (half of them have 120 or more on the shorter side)"; and the colours.
std::string text_of(const PictureSizes& sizes);

// Says how many of the pictures cannot be read, with the first ones and the reasons; empty if all can.
std::vector<std::string> problems_of(const std::vector<PictureFacts>& pictures);

}  // namespace crema
