// Builds a Graph from a filtered NetParameter: creates and sets up layers, infers shapes, tracks
// versions of blobs and parameters, and decides where gradients flow. Logs what Caffe logs
// meanwhile.
#pragma once

#include <functional>
#include <string>

#include "net/graph/graph.h"
#include "net/graph/layer_error.h"

namespace crema {

struct GraphOptions {
  bool training = false;
  bool seed_outputs = false;  // outputs take a gradient as if they carried a loss
  bool whole_epochs = false;  // no batch of a source crosses the end of an epoch
  std::string folder;
  std::function<bool(const std::string& layer)> frozen;  // its blobs do not learn; none: all do
  std::function<std::string(int layer)> where;  // position of a layer of the given NetParameter
  std::function<std::string(const std::string& blob)>
      why_missing;  // why no layer makes it; or empty
};

// Error for what is wrong with the net as a whole, LayerError for the first layer that is wrong.
Graph build_graph(Context& context, const NetParameter& filtered, const GraphOptions& options);

// Runs body; an Error is prefixed with the layer's position and name.
void at_layer(const LayerPlace& place, const std::function<void()>& body);

// Infers all shapes again after an input has changed.
void infer_shapes(Graph& graph);
// The same for the layers from `first` to `last` and for Inputs, for a partial pass; other layers
// whose bottoms change become stale.
void infer_shapes(Graph& graph, int first, int last);

}  // namespace crema
