// Reads ONNX files: the model, checked, with its constants apart.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "exchange/onnx/onnx_tensor.h"
#include "proto/onnx.pb.h"

namespace crema {

using OnnxConstants = std::map<std::string, std::shared_ptr<const OnnxTensor>>;

struct OnnxFile {
  std::string path;
  int opset = 0;
  onnx::GraphProto graph;   // without the initializers and the nodes of type Constant
  OnnxConstants constants;  // these, by name
  std::map<std::string, std::string> metadata;  // metadata_props
};

constexpr int kOldestOnnxOpset = 9, kNewestOnnxOpset = 21;

// "node 3 (Conv "conv1")", for messages.
std::string node_text(const onnx::NodeProto& node, int index);

// The file as it is. Error for one that is damaged or has no graph.
onnx::ModelProto read_onnx_model(const std::string& path);

// Error for a file that is damaged, of other opsets or domains, or whose nodes read values that no
// earlier node makes.
OnnxFile read_onnx(const std::string& path);

}  // namespace crema
