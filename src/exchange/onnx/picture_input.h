// Preparation inside a model: it takes pictures, and its first operators make the net's input of them.
#pragma once

#include <string>
#include <vector>

#include "data/transforms/transform.h"
#include "exchange/onnx/layer_export.h"
#include "proto/preparation.pb.h"

namespace crema {

// Pictures have the axes sample, row, column, channel, and channels in the order R, G, B, or one.
struct PictureInput {
  Transform transform;  // of a picture in the order B, G, R, resized
  int64_t channels = 3;
  // The size to which pictures are resized, or that of their smaller side; 0: they are not.
  int64_t height = 0, width = 0, short_side = 0;
  // Whether the model does that, so that pictures may have any size.
  bool resizes = false;

  // A picture of this size needs no resizing, or is the only one that the model takes.
  Shape usual_size() const { return {height, width, channels}; }
  // The net's input for such a picture (row, column, channel).
  std::vector<float> prepared(const std::vector<uint8_t>& pixels) const;
};

// How the net's input of this shape is made of pictures, `resizes`: of any size. `folder`: where a mean
// file is looked up. `flag`, which asked for it, begins messages. Error for a preparation that operators
// cannot express.
PictureInput picture_input(const InputPreparation& preparation, const Shape& shape, bool resizes,
                           const std::string& folder, const std::string& flag = "-preprocess");

// Adds the operators from `picture`, an input of the model, to the top of an Input layer.
void write_picture_input(const PictureInput& input, const std::string& picture, int top,
                         LayerExport& layer);

}  // namespace crema
