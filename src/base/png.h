// Pictures as PNG files, also embedded in pages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

// Rows from the top, pixels from the left: grey, or red, green and blue. `caption`: text below the
// picture if several are shown.
struct Picture {
  int width = 0, height = 0, channels = 1;
  std::vector<uint8_t> bytes;
  std::string caption;
};

// The bytes of a PNG file.
std::string png_of(const Picture& picture);
// "data:image/png;base64,...", for an <img>.
std::string picture_address(const Picture& picture);

}  // namespace crema
