#include "net/weights/net_weights.h"

#include "base/error.h"

namespace crema {

NetWeights weights_of(Net& net) {
  NetWeights weights;
  for (const Parameter& parameter : net.parameters())
    weights[parameter.layer].push_back({parameter.shape, to_floats(net.context(), parameter.data)});
  return weights;
}

void set_weights(const NetWeights& weights, Net& net) {
  std::map<std::string, size_t> next;  // by layer
  for (const Parameter& parameter : net.parameters()) {
    const auto layer = weights.find(parameter.layer);
    const size_t index = next[parameter.layer]++;
    require(layer != weights.end() && index < layer->second.size(), "layer \"", parameter.layer,
            "\" has no weights with index ", index);
    const WeightBlob& blob = layer->second[index];
    require(blob.shape.count() == parameter.shape.count(), "layer \"", parameter.layer,
            "\": weights ", index, " have shape ", blob.shape.brief(), ", but the net needs ",
            parameter.shape.brief());
    from_floats(net.context(), blob.values.data(), parameter.data);
  }
  net.parameters_changed();
}

}  // namespace crema
