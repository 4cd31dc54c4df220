// Adds FakeQuantize layers to a net, so that it learns with the integers that `crema quantize` gives it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "proto/net.pb.h"
#include "proto/params/quantization.pb.h"

namespace crema {

struct FakeQuantization {
  FakeQuantizeParameter values;  // how the layers' inputs are rounded
  uint32_t weight_bits = 8;
  std::function<bool(const std::string& layer)> takes;  // which layers; none: all
};

struct FakeQuantizedNet {
  NetParameter net;
  // For each layer, the one of the given net that it comes from: for an added one, the first that reads its top.
  std::vector<int> origins;
  // For each layer that rounds, the FakeQuantize before its first bottom.
  std::map<std::string, std::string> ranges;
};

// `net`: the layers of one phase. Before each Convolution and InnerProduct that computes in float32, its bottoms are
// rounded by a FakeQuantize, one for all readers of a blob, called "BLOB/range". The layer's weights get
// params_follow. Layers that are not stored stay as they are. Names do not depend on `takes`.
FakeQuantizedNet add_fake_quantize(const NetParameter& net, const FakeQuantization& how);

}  // namespace crema
