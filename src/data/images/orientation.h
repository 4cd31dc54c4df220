// Turns images as the EXIF data of cameras say.
#pragma once

#include <utility>

#include "data/images/image.h"

namespace crema {

// orientation: EXIF's 1 to 8, the position of the file's first row and column; 0: unknown.
template <typename T>
void turn_image(int orientation, Pixels<T>& image) {
  if (orientation <= 1) return;
  const int64_t rows = image.height, columns = image.width, channels = image.channels;
  const bool on_its_side = orientation >= 5;
  Pixels<T> turned{channels, on_its_side ? columns : rows, on_its_side ? rows : columns, {}};
  turned.pixels.resize(image.pixels.size());
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_below =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  T* to = turned.pixels.data();
  for (int64_t y = 0; y < turned.height; ++y) {
    for (int64_t x = 0; x < turned.width; ++x) {
      const int64_t row = on_its_side ? x : y, column = on_its_side ? y : x;
      const T* from = image.pixels.data() + ((from_below ? rows - 1 - row : row) * columns +
                                             (from_right ? columns - 1 - column : column)) *
                                                channels;
      for (int64_t c = 0; c < channels; ++c) *to++ = from[c];
    }
  }
  image = std::move(turned);
}

}  // namespace crema
