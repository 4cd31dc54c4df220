// Graph: a net as layers and versions of blobs, before any pass has rewritten it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "proto/net.pb.h"

namespace crema {

// Activation checkpointing: values that backward reads and a layer can cheaply recompute
// (Layer::recomputes) need not be kept.
enum class Recompute {
  off,    // everything is kept
  cheap,  // large values are recomputed, as long as that costs little of an iteration
  all,    // everything that can be
};

// One version of a blob. An in-place layer makes a new version instead of overwriting the old one.
struct Value {
  std::string blob;
  Shape shape;
  Order order = Order::row_major;
  DType dtype = DType::f32;  // set by the plan
  int64_t channels = 0;      // in memory, when padded: Format::channels
  int producer = -1;         // node
  int top = 0;               // which top of the producer
  bool needs_diff = false;   // some gradient flows back through it
  float loss_weight = 0;     // not 0: part of the loss
  bool output = false;       // no layer reads it: a result of the net
  bool keep = false;         // its content must survive until the end of the pass
};

// Prefix of a layer's errors.
struct LayerPlace {
  std::string layer;  // its name
  std::string where;  // its position in the prototxt, "net.prototxt:12:1"; "" where unknown
};

struct Node {
  std::shared_ptr<Layer> layer;
  LayerParameter message;
  std::vector<int> bottoms, tops;  // values
  std::vector<int> parameters;     // indexes into Graph::parameters
  std::vector<bool> propagate;     // for each bottom: a gradient is wanted and allowed
  bool backward = false;
  std::vector<int> members;  // indices in Graph::net of the layers that this node runs
  LayerPlace place;          // of the last of them
  // A bottom has a new shape, and no pass has reached this layer since: it must be inferred again
  // before it runs. Partial passes leave such layers.
  bool stale = false;
};

// A parameter blob; several layers may share it.
struct Parameter {
  std::string name;   // of `param { name }`, or ""
  std::string layer;  // owner
  int index = 0;      // which parameter of the owner
  Shape shape;
  const FillerParameter* filler = nullptr;
  uint64_t filler_stream = 0;
  std::shared_ptr<const std::vector<float>>
      given;  // first values from the file; none: the filler's
  float lr_mult = 1, decay_mult = 1;
  bool learned = true;
  bool muon = true;   // as param { muon } says
  Tensor data, diff;  // set by the plan
  Tensor half;        // a 16-bit copy of data; only in nets that compute in 16 bits
};

struct Graph {
  NetParameter net;  // filtered, with Caffe's Split layers
  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<Parameter> parameters;
  // For each layer of `net`: the values of its bottoms and tops, its parameters.
  struct View {
    std::vector<int> bottoms, tops, parameters;
    bool backward = false;
  };
  std::vector<View> views;
  std::vector<int> outputs;  // values that no layer reads, in the order of their names
  std::vector<std::string> output_names;
};

// A node whose layer reads data.
struct SourceNode {
  const Node& node;
  DataSource& source;
};
std::vector<SourceNode> sources_of(const Graph& graph);

}  // namespace crema
