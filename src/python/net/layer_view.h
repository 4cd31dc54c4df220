// The parts of a Python net: blobs, parameters and layers, which keep the net alive.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "python/net/blob_object.h"
#include "python/net/net_object.h"

namespace crema::python {

// By index into NetMap::blobs.
std::shared_ptr<BlobObject> make_net_blob(const std::shared_ptr<NetObject>& net, int blob);

// An element of Net.layers.
struct LayerView {
  std::shared_ptr<NetObject> net;
  int layer;  // as Caffe counts

  const std::string& name() const { return net->map().layers[layer].name; }
  const std::string& type() const { return net->map().layers[layer].type; }
  // The parameters, as the layer sees them.
  std::vector<std::shared_ptr<BlobObject>> blobs() const;
};

}  // namespace crema::python
