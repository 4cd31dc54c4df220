// The numbers of a PNG's pixels as they are stored: of an indexed image the indices, not the colours
// of its palette. Label images are published so.
#pragma once

#include <string_view>

#include "data/images/image.h"

namespace crema {

// `file`: the content of a PNG file, grey or indexed, of up to 8 bits a pixel. Grey values of fewer
// bits are not stretched to 255. Error gives the reason.
Image decode_png_numbers(std::string_view file);

}  // namespace crema
