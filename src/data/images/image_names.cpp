#include "data/images/image_names.h"

#include <set>

namespace crema {

bool is_image_ending(const std::string& ending) {
  static const std::set<std::string> endings = {"jpg", "jpeg", "jpe", "png", "bmp", "dib", "webp",
                                                "tif", "tiff", "pbm", "pgm", "ppm", "pnm", "pfm",
                                                "sr",  "ras",  "jp2", "hdr", "exr", "pic", "gif"};
  return endings.count(ending) > 0;
}

}  // namespace crema
