// Makes a net of an ONNX model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "device/context.h"
#include "exchange/onnx/reader.h"
#include "proto/net.pb.h"

namespace crema {

struct ImportOptions {
  int64_t batch = 1;                    // for inputs whose first extent the model leaves open
  std::map<std::string, Shape> shapes;  // of inputs that the model leaves open
};

struct ImportedNet {
  NetParameter net;  // with its weights in `blobs`
  std::vector<std::string> notes;
  std::vector<std::string> inputs;             // of the model, which are Input layers
  std::map<std::string, std::string> outputs;  // of the model, and the blob of each
};

// Error, which names the node, for an operator that no layers compute.
ImportedNet import_onnx(Context& context, const OnnxFile& file, const ImportOptions& options);

}  // namespace crema
