#include "net/deploy/training_net.h"

#include "net/deploy/deploy_inputs.h"
#include "net/sources/batch_size.h"

namespace crema {

DeployedNet training_net(const NetParameter& net, DeployOptions options) {
  const DeployGraph graph(net, options.where);
  if (options.batch == 0) options.batch = static_cast<int>(divided_batch(net));
  options.labels = true;
  const std::vector<DeployInput> inputs =
      find_inputs(graph, std::vector<bool>(graph.roles.size(), true), options);
  DeployedNet training;
  training.net.set_name(net.name());
  for (int i = 0; i < net.layer_size(); ++i) {
    bool replaced = graph.roles[i] == DeployRole::source;
    for (const DeployInput& input : inputs) {
      replaced = replaced || input.slice == i;
      if (input.source != i) continue;
      LayerParameter* const layer = training.net.add_layer();
      layer->set_name(graph.blobs[input.blob].name);
      layer->set_type("Input");
      layer->add_top(graph.blobs[input.blob].name);
      BlobShape* const shape = layer->mutable_input_param()->add_shape();
      for (const int64_t extent : input.shape.dims()) shape->add_dim(extent);
      training.origins.push_back(i);
    }
    if (replaced) continue;
    *training.net.add_layer() = net.layer(i);
    training.origins.push_back(i);
  }
  return training;
}

}  // namespace crema
