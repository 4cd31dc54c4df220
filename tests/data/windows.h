// Windows of images whose pixels show where they come from.
#pragma once

#include "data/images/image.h"

namespace crema::tests {

// Row y, column x of a.png (9 x 10) is 10 y + x; b.png is 100 + that.
inline Image ramp(int base) {
  Image image{1, 9, 10, {}};
  for (int i = 0; i < 90; ++i) image.pixels.push_back(static_cast<uint8_t>(base + i));
  return image;
}

// Rows [top, top + height) and columns [left, left + width) of a.png, resized, on a square of
// zeros.
inline std::vector<float> placed(int top, int left, int height, int width, int to_height,
                                 int to_width, int at_row, int at_column, int size,
                                 bool mirror = false) {
  Image part = cut_image(ramp(0), top, left, height, width);
  resize_image(to_height, to_width, part);
  std::vector<float> out(static_cast<size_t>(size * size));
  for (int y = 0; y < to_height; ++y) {
    for (int x = 0; x < to_width; ++x) {
      out[(at_row + y) * size + at_column + x] =
          part.pixels[y * to_width + (mirror ? to_width - 1 - x : x)];
    }
  }
  return out;
}

}  // namespace crema::tests
