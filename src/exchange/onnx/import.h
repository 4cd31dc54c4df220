// Makes a net of an ONNX model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "device/context.h"
#include "exchange/onnx/import_graph.h"
#include "exchange/onnx/reader.h"
#include "net/net.h"

namespace crema {

struct ImportOptions {
  int64_t batch = 1;                    // for inputs whose first extent the model leaves open
  std::map<std::string, Shape> shapes;  // of inputs that the model leaves open
};

struct ImportedNet {
  NetParameter net;
  std::map<std::string, std::vector<LayerBlob>> weights;  // by layer
  std::map<std::string, std::string> nodes;  // the model's nodes, by layer: Conv "conv1"
  std::vector<std::string> notes;
  std::vector<std::string> inputs;             // the model's, which are Input layers
  std::map<std::string, std::string> outputs;  // the model's, with the blob of each
};

// Error, which names the node, for an operator that no layers compute.
ImportedNet import_onnx(Context& context, const OnnxFile& file, const ImportOptions& options);

// The text with a comment before each layer that names its node of the model.
std::string with_node_names(const std::string& text, const ImportedNet& imported);

// Sets the weights of a net that was made of imported.net.
void set_imported_weights(const ImportedNet& imported, Net* net);

}  // namespace crema
