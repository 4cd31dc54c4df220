// Pictures as PNG files: for TensorBoard, and embedded in pages.
#pragma once

#include <string>
#include <vector>

#include "solver/events.h"

namespace crema {

// The bytes of a PNG file.
std::string png_of(const Picture& picture);
// "data:image/png;base64,...", for an <img>.
std::string picture_address(const Picture& picture);

}  // namespace crema
