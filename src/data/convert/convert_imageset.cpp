#include "data/convert/convert.h"
#include "data/convert/convert_image.h"

namespace crema {

ImagesetResult convert_imageset(const std::string& root, const std::string& list,
                                const std::string& database, const ImagesetOptions& options,
                                Log& log) {
  const std::vector<ListedImage> lines = read_class_list(list);
  Datum datum;
  return convert_list(list, root, lines, database, options, log, datum,
                      [&](const ListedImage& line, const std::string& path) {
                        return convert_image(path, line.class_number, options, datum);
                      });
}

}  // namespace crema
