// Writes a net with its weights as files of a Caffe dialect.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "exchange/caffe/caffe_graph.h"
#include "exchange/caffe/dialect.h"
#include "net/net.h"

namespace crema {

struct CaffeOptions {
  // BatchNorm, Scale and Bias become part of the convolution before them.
  bool fold = true;
};

// What becomes of a layer that the dialect does not take as it is.
struct CaffeChange {
  std::string where;  // "net.prototxt:12:1"
  std::string
      field;  // the field of the layer that is the reason, "pooling_param.round_mode"; "": none
  std::string layer;  // its name and type, for people
  std::string text;   // why, and what it becomes or would need
  bool refused = false;
};

// A top of a layer.
struct CaffeTop {
  std::string layer, blob;
  int index = 0;
};

struct CaffeModel {
  NetParameter net;  // the deploy net
  // Of each of its layers. Unchanged ones are those of the exported net, which must outlive them.
  std::vector<std::vector<CaffeBlob>> weights;
  std::vector<CaffeChange> changes;
  // Values of the given net's graph (by index) that the model has, too.
  std::map<int, CaffeTop> values;
};

// The net: for inference (phase TEST), on the CPU, planned with NetOptions::keep_blobs and row_major,
// without fusion. Names of blobs are kept as in CaffeGraph::write. Error with a position for a layer
// that the dialect cannot express.
CaffeModel export_caffe(Net& net, const Dialect& dialect, const CaffeOptions& options = {});

// What export_caffe() would change or refuse, in the order of the net.
std::vector<CaffeChange> check_caffe(Net& net, const Dialect& dialect);

// Writes the .caffemodel of `model.net`.
void write_caffe_weights(Context& context, const CaffeModel& model, const std::string& path);

}  // namespace crema
