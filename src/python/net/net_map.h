// NetMap: the blobs and layers of a net as Caffe's Net lists them, found in Crema's graph, in which
// a blob that in-place layers write has several versions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "net/graph/graph.h"

namespace crema::python {

struct NetMap {
  struct Blob {
    std::string name;
    std::vector<int> versions;  // values, in the order in which layers write them
    bool input = false;         // a top of an Input layer
    bool output = false;
    // A top of a Split layer, which is the value that it splits; its gradient is the part that one
    // reader gives: layer and bottom. -1: none reads it.
    bool split = false;
    int reader = -1, bottom = -1;
    float loss_weight = 0;
  };
  struct Layer {
    std::string name, type;
    std::vector<int> bottoms, tops;  // blobs
    bool source = false;             // it has no bottoms
  };
  explicit NetMap(const Graph& graph);
  // Error with similar names.
  int layer(const std::string& name) const;

  std::vector<Blob> blobs;
  std::vector<Layer> layers;
  std::vector<int> inputs, outputs;  // blobs
  std::map<std::string, int> blob_named;
};

}  // namespace crema::python
