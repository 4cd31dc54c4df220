// Contact sheets: many small pictures as one.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/png.h"

namespace crema {

// Around an object: corners as shares of the picture's width and height.
struct SheetBox {
  float left = 0, top = 0, right = 0, bottom = 0;
  int label = 0;
  std::string caption;
};

struct SheetCell {
  Picture picture;
  std::vector<SheetBox> boxes;
};

// Red, green and blue; neighbouring labels have colours that differ.
std::array<uint8_t, 3> color_of_class(int label);

// Colours each pixel by its label, one per pixel; 0 is the background, which stays, and 255,
// ignored by convention, becomes white.
void lay_labels_over(const std::vector<int>& labels, Picture& picture);

// In rows on grey, each picture with its caption below: small ones enlarged by an integer factor,
// large ones reduced. A caption has digits, letters and some signs, as many as fit.
Picture contact_sheet(const std::vector<SheetCell>& cells);

}  // namespace crema
