// How `classify` makes a net's input from an image or a record: as the data layer that the input
// stands for does in phase TEST; -resize, -mean, -scale and -rgb override that.
#pragma once

#include <memory>
#include <string>

#include "data/lists/image_files.h"
#include "proto/layer.pb.h"
#include "tools/classify/classify_inputs.h"

namespace crema {

struct ImagePreparation {
  ImageReading reading;
  Transform images, records;

  std::unique_ptr<Dataset> dataset(const ImageSource& source) const;
};

// `layer`: the data layer, or the Input layer of a net without one. `sample`: channels, height and
// width of the input. Error when images prepared so do not fit it. Logs what it does to an image
// beyond what the layer says.
ImagePreparation prepare_images(const LayerParameter& layer, const std::string& folder,
                                const Shape& sample, Log& log);

}  // namespace crema
