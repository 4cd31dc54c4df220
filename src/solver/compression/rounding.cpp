#include "solver/compression/rounding.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "layers/layer_facts.h"
#include "net/graph/filter.h"
#include "net/surgery/fake_quantize_net.h"

namespace crema {

void Rounding::add_to(NetFile* net, NetOptions* options) const {
  const QuantizeTraining& p = file_.solver.quantize();
  FakeQuantization how;
  how.values.set_range(p.range());
  how.values.set_decay(p.decay());
  how.weight_bits = p.bits();
  how.takes = [this](const std::string& layer) { return layers_.has(layer); };
  std::vector<int> kept;
  const NetParameter filtered =
      filter_net(net->net, options->state, silent_log(), &kept, options->where);
  FakeQuantizedNet made = add_fake_quantize(filtered, how);
  net->net = std::move(made.net);
  for (int& origin : made.origins) origin = kept[origin];
  options->where = [where = options->where, origins = std::move(made.origins)](int layer) {
    return where(origins[layer]);
  };
}

void Rounding::check(const Net& net) const {
  std::vector<std::string> names;
  for (const LayerParameter& layer : net.graph().net.layer())
    if (facts_of(layer.type()).quantizes) names.push_back(layer.name());
  layers_.require_used(file_, names, "a layer that could be quantized");
}

}  // namespace crema
