// Decodes JPEGs with libjpeg-turbo itself: OpenCV, which uses it too, tells nobody when data are
// missing. For the image module (data/images/image_module.h).
#pragma once

#include "data/images/image_module.h"

namespace crema {

// The same values as OpenCV's, not turned; only_check: as Decoding says. False where that must decide: what libjpeg gives up on,
// and files of other than one or three channels.
bool decode_jpeg(std::string_view file, Color color, bool only_check, Image& image,
                 JpegRemarks& remarks);

}  // namespace crema
