#include "python/net/net_map.h"

#include <algorithm>

#include "base/error.h"

namespace crema::python {

NetMap::NetMap(const Graph& graph) {
  for (int i = 0; i < graph.net.layer_size(); ++i) {
    const LayerParameter& message = graph.net.layer(i);
    const Graph::View& view = graph.views[i];
    Layer layer{message.name(), message.type(), {}, {}, message.bottom_size() == 0};
    for (int j = 0; j < message.bottom_size(); ++j) {
      const int blob = blob_named.at(message.bottom(j));
      layer.bottoms.push_back(blob);
      if (blobs[blob].split) {
        blobs[blob].reader = i;
        blobs[blob].bottom = j;
      }
    }
    for (size_t j = 0; j < view.tops.size(); ++j) {
      const bool named = static_cast<int>(j) < message.top_size();
      const std::string name = named ? message.top(static_cast<int>(j)) : "(automatic)";
      const auto at = blob_named.find(name);
      const bool in_place = named && at != blob_named.end();
      const int blob = in_place ? at->second : static_cast<int>(blobs.size());
      if (!in_place) {
        blob_named[name] = blob;
        blobs.push_back({name, {}, message.type() == "Input"});
        if (blobs.back().input) inputs.push_back(blob);
        blobs.back().split = message.type() == "Split" && view.tops[j] == view.bottoms[0];
      }
      blobs[blob].versions.push_back(view.tops[j]);
      // The weight of a value that a Split layer copies is that of the Split's first top.
      const float weight = graph.values[view.tops[j]].loss_weight;
      if (!blobs[blob].split) {
        blobs[blob].loss_weight = weight;
      } else if (static_cast<int>(j) < message.loss_weight_size()) {
        blobs[blob].loss_weight = message.loss_weight(static_cast<int>(j));
        blobs[layer.bottoms[0]].loss_weight = 0;
      }
      layer.tops.push_back(blob);
    }
    layers.push_back(std::move(layer));
  }
  for (const std::string& name : graph.output_names) {
    const auto at = blob_named.find(name);
    if (at == blob_named.end()) continue;
    blobs[at->second].output = true;
    outputs.push_back(at->second);
  }
}

int NetMap::layer(const std::string& name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].name == name) return static_cast<int>(i);
    names.push_back(layers[i].name);
  }
  fail("the net has no layer \"", name, "\"", did_you_mean(name, names));
}

}  // namespace crema::python
