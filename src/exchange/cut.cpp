#include "exchange/cut.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "layers/layer_facts.h"

namespace crema {

std::vector<int> cut_before(NetParameter* net, const std::vector<std::string>& layers) {
  std::set<std::string> lost;  // blobs
  NetParameter left = *net;
  left.clear_layer();
  std::vector<int> origins;
  for (const std::string& name : layers) {
    require(std::any_of(net->layer().begin(), net->layer().end(),
                        [&](const LayerParameter& layer) { return layer.name() == name; }),
            "the net for inference has no layer \"", name, "\"");
  }
  for (int i = 0; i < net->layer_size(); ++i) {
    const LayerParameter& layer = net->layer(i);
    const bool named = std::find(layers.begin(), layers.end(), layer.name()) != layers.end();
    const bool lacks = std::any_of(layer.bottom().begin(), layer.bottom().end(),
                                   [&](const std::string& blob) { return lost.count(blob) > 0; });
    if (named || lacks) {
      lost.insert(layer.top().begin(), layer.top().end());
    } else {
      for (const std::string& blob : layer.top()) lost.erase(blob);
      *left.add_layer() = layer;
      origins.push_back(i);
    }
  }
  require(std::any_of(left.layer().begin(), left.layer().end(),
                      [](const LayerParameter& layer) { return layer.type() != "Input"; }),
          "nothing is left of the net before its layer \"", layers.front(), "\"");
  *net = std::move(left);
  return origins;
}

std::vector<std::string> layers_that_select(const NetParameter& net) {
  std::vector<std::string> names;
  for (const LayerParameter& layer : net.layer())
    if (facts_of(layer.type()).selects) names.push_back(layer.name());
  require(!names.empty(), "the net has no layer that selects objects");
  return names;
}

}  // namespace crema
