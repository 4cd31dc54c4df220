// What the first bytes of an image file say about it. Decoding is not needed for that, so that a
// picture of a million rows costs nothing before it is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace crema {

struct ImageHeader {
  int64_t height = 0, width = 0;
  int bits = 8;  // of a channel
  // A JPEG whose end is missing, and so a part of the picture, which decoders fill with grey.
  bool cut = false;
};

// Of JPEG, PNG, BMP, WebP, TIFF, PNM, PFM, JPEG 2000 and Sun raster files. Nothing for other kinds
// and damaged headers: the decoder knows better.
std::optional<ImageHeader> read_image_header(std::string_view file);

}  // namespace crema
