// Makes a net's input from a picture or a record. The preparation comes from the data layer that the
// input replaces, or from the comments of a deploy file.
#pragma once

#include <string>

#include "base/log.h"
#include "data/lists/image_files.h"
#include "proto/preparation.pb.h"

namespace crema {

struct PicturePreparation {
  ImageReading reading;
  Transform images, records;
};

// How a user gives pictures another size before, or the input another shape; for messages.
struct PictureRemedies {
  const char *resize, *shape;
};

// `sample`: channels, height and width of the input. `resize_given`: the size in `input` is the
// user's. Error when images prepared so do not fit the sample. Logs to what size it makes them.
PicturePreparation prepare_pictures(const InputPreparation& input, const std::string& folder,
                                    const Shape& sample, bool resize_given,
                                    const PictureRemedies& remedies, Log& log);

}  // namespace crema
