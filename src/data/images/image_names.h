// The endings of the names of image files.
#pragma once

#include <string>

namespace crema {

// "jpg", "png", ...: in small letters, without the dot.
bool is_image_ending(const std::string& ending);

}  // namespace crema
