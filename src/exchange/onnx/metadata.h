// What a model says, in its metadata_props, of the pictures and classes of its net.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "exchange/onnx/export.h"
#include "proto/onnx.pb.h"
#include "proto/preparation.pb.h"
#include "tensor/shape.h"

namespace crema {

// For each input that takes pictures, INPUT.KEY with these keys, in the order of processing; values are
// from 0 to 255 before:
//   channels    the planes: BGR, RGB or GRAY
//   resize      the size to which a picture is brought first: WIDTHxHEIGHT
//   short_side  or the length of its smaller side
//   crop        middle: the input is the middle of that picture
//   mean        what to subtract: a value, or one for each plane, separated by commas
//   mean_file   or the name of a mean image (binaryproto)
//   scale       what to multiply with then
// Inputs that the model prepares itself, PictureInput, have only
//   channels    RGB or GRAY, the last axis
// labels: the names of the classes, one a line.
void add_metadata(const NetPreparation& preparation, const std::vector<std::string>& labels,
                  const PictureInputs& pictures, onnx::ModelProto* model);

// How a data layer prepares pictures for an input of this shape, as such entries say it. Error for a
// value that is no such entry.
InputPreparation preparation_in(const std::map<std::string, std::string>& metadata,
                                const std::string& input, const Shape& shape);

}  // namespace crema
