// How `classify` makes a net's input from an image or a record. The preparation comes from the data
// layer that the input replaces, or from the comments of a deploy file.
#pragma once

#include <memory>
#include <string>

#include "data/lists/image_files.h"
#include "proto/preparation.pb.h"
#include "tools/classify/classify_inputs.h"
#include "tools/console/program_log.h"

namespace crema {

struct ImagePreparation {
  ImageReading reading;
  Transform images, records;

  std::unique_ptr<Dataset> dataset(const ImageSource& source) const;
};

// `sample`: channels, height and width of the input. `resize_given`: the size in `input` is that of
// -resize. Error when images prepared so do not fit the sample. Logs to what size it makes them.
ImagePreparation prepare_images(const InputPreparation& input, const std::string& folder,
                                const Shape& sample, bool resize_given, ProgramLog& log);

}  // namespace crema
