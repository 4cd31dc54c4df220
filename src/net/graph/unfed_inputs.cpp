#include "net/graph/unfed_inputs.h"

#include <vector>

#include "base/error.h"
#include "net/graph/filter.h"

namespace crema {

void refuse_unfed_inputs(const NetParameter& net, const NetState& state,
                         const std::function<std::string(int layer)>& where) {
  std::vector<int> kept;
  const NetParameter filtered = filter_net(net, state, silent_log(), &kept, where);
  for (int i = 0; i < filtered.layer_size(); ++i) {
    const LayerParameter& layer = filtered.layer(i);
    if (layer.type() != "Input" || layer.top_size() == 0) continue;
    const std::vector<std::string> tops(layer.top().begin(), layer.top().end());
    fail(
        where ? where(kept[i]) + ": " : "", "layer \"", layer.name(), "\": nothing fills ",
        join(tops, ", "),
        ", which would stay zero: an Input layer is for programs that set it. "
        "Put a layer in its place that reads data (Data, ImageData, HDF5Data, ...), or try the net "
        "on random numbers with -assume default");
  }
}

}  // namespace crema
