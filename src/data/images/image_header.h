// Reads the header of an image file. This needs no decoding, so an image of a million rows costs
// nothing before it is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace crema {

struct ImageHeader {
  int64_t height = 0, width = 0;
  int bits = 8;       // per channel
  int channels = 0;   // for a JPEG, PNG or TIFF file; 0: unknown
  bool inks = false;  // four channels are cyan, magenta, yellow and black
  // A JPEG without its end, and so without a part of the image, which decoders fill with grey.
  bool cut = false;
  // For a JPEG or PNG file, EXIF's number: 1 is upright, 2 to 8 are rotated or mirrored.
  int orientation = 1;
  // A JPEG such as every decoder takes, those in hardware too: baseline, of one scan, grey or YCbCr
  // with 8 bits, colours sampled as 4:4:4, 4:2:2, 4:2:0 or 4:4:0.
  bool baseline = false;

  // Whether it has more pixels than `most`. Sides in damaged files may be so large that their product
  // overflows.
  bool exceeds(int64_t most) const { return height > 0 && width > most / height; }
};

// For JPEG, PNG, BMP, WebP, TIFF, PNM, PFM, JPEG 2000 and Sun raster files. None for other formats
// and damaged headers, which are left to the decoder.
std::optional<ImageHeader> read_image_header(std::string_view file);

}  // namespace crema
