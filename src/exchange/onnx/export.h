// Writes a net with its weights as an ONNX model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "exchange/onnx/layer_export.h"
#include "exchange/onnx/picture_input.h"
#include "net/net.h"
#include "proto/onnx.pb.h"

namespace crema {

struct OnnxModel {
  onnx::ModelProto model;
  std::vector<std::string> notes;  // what a user should know
  // Names of values of the net's graph (by index) that the model has, too.
  std::map<int, std::string> values;
  // The keys of parameters in OnnxOptions::trained, by the names of their constants.
  std::map<std::string, std::string> trained;
};

// The net: for inference (phase TEST; or OnnxOptions::training), on the CPU, planned with NetOptions::keep_blobs and row_major.
// Names of blobs are kept; of a blob that in-place layers write several times the last version has
// the name, an earlier one "blob/layer"; of an input the input has it, and later ones "blob/layer".
// Inputs in `pictures` (by blob) take pictures of that name, uint8; what is made of them is
// "blob/prepared". Error with a position for a layer that ONNX cannot express. Changes the net's plan.
using PictureInputs = std::map<std::string, PictureInput>;
OnnxModel export_onnx(Net& net, OnnxOptions options, const PictureInputs& pictures = {});

// The names of all values of a net's graph, by index, in the way described above.
std::vector<std::string> onnx_names(const Graph& graph);

// The smallest version of the format that has these operators. Error for an opset that is not written.
int ir_version_of(int opset);

}  // namespace crema
