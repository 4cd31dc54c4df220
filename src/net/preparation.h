// NetPreparation (proto/preparation.proto): how to turn images into the inputs of a net.
//
// A deploy file has it in comments, because every reader of Caffe's text format skips these and
// refuses unknown fields:
//   # crema: input {
//   # crema:   name: "data"
//   # crema:   channels: BGR
//   # crema:   transform_param { scale: 0.00390625 }
//   # crema: }
//   # crema: labels: "digits_lmdb/labels.txt"
// The text after "# crema: " in all of these lines is one message rather than prose, so that
// mistakes in it have a position and exporters find the same fields. Paths are looked up in the
// folder of the file first, then as any path of a net.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "proto/layer.pb.h"
#include "proto/preparation.pb.h"
#include "tensor/shape.h"

namespace crema {

constexpr const char* kPreparationLine = "# crema: ";

// The comment lines of a file in `folder`, in relation to which relative paths are written. "" for an
// empty message.
std::string text_of(const NetPreparation& preparation, const std::string& folder);

// Null: nothing is known of that input.
const InputPreparation* find_preparation(const NetPreparation& preparation,
                                         const std::string& input);

// Changes made by the user. Returns whether there are any.
using PreparationChange = std::function<bool(InputPreparation*)>;

// What a data layer does in phase TEST. `input`: the name and shape of the blob that replaces its
// top; `folder`: that of the net's file. A layer that resizes nothing keeps the size of its mean
// image or of the records of its database; a warning if neither is there. Empty if the layer does
// not read images.
NetPreparation preparation_of(const LayerParameter& layer, const std::string& input,
                              const Shape& shape, const std::string& folder,
                              const PreparationChange& change, Log& log);

// The default for an input of samples x channels x height x width.
InputPreparation assumed_preparation(const std::string& input, const Shape& shape);

// The parameters of the Transform that makes an input of this shape (channels, height, width) from
// an image that is decoded in the order B, G, R and has been resized as `input` says.
TransformationParameter image_transform(const InputPreparation& input, const Shape& sample);

// Whether an image is cropped.
bool crops(const TransformationParameter& parameter);

// "data: 1x3x32x32, planes B, G, R, resized to 40x40, the middle; minus mean.binaryproto, times 0.5".
std::string describe(const InputPreparation& preparation, const Shape& shape);

}  // namespace crema
