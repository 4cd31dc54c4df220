// Code shared by the converters of image lists.
#pragma once

#include <functional>
#include <vector>

#include "data/convert/convert.h"
#include "data/images/image.h"
#include "data/lists/image_list.h"

namespace crema {

struct ConvertedImage {
  Image image;   // in whatever form it is stored
  int bits = 8;  // per channel, in the file
};

// Reads the file into a Datum as the options say. Error names the file.
ConvertedImage convert_image(const std::string& path, int label, const ImagesetOptions& options,
                             Datum& datum);

// Writes a database of the records that `make` puts into `record` for each line, whose image is at
// `path`; or two, as the options split the lines. A line for which it throws is logged as an error
// and left out.
ImagesetResult convert_list(
    const std::string& list, const std::string& root, const std::vector<ListedImage>& lines,
    const std::string& database, const ImagesetOptions& options, Log& log,
    const google::protobuf::Message& record,
    const std::function<ConvertedImage(const ListedImage&, const std::string& path)>& make);

}  // namespace crema
