// Code shared by the converters of lists of images.
#pragma once

#include <functional>
#include <vector>

#include "data/convert/convert_image.h"
#include "data/lists/image_list.h"

namespace crema {

// Writes a database of the records that `make` creates for each line, whose image is at `path`; or
// two, as the options split the lines. `make` is called on several threads at a time, each time
// with a record of the kind of `kind`, with arbitrary content. A line for which it throws is logged
// as an error and skipped.
using MakeRecord = std::function<ConvertedImage(const ListedImage& line, const std::string& path,
                                                google::protobuf::Message& record)>;
ImagesetResult convert_list(const std::string& list, const std::string& root,
                            const std::vector<ListedImage>& lines, const std::string& database,
                            const ImagesetOptions& options, Log& log,
                            const google::protobuf::Message& kind, const MakeRecord& make);

// The labels of a line, as read_class_list() reads it, in a record.
void set_labels(const ListedImage& line, Datum& datum);

}  // namespace crema
