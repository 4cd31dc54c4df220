#include "solver/events/checksum.h"

#include <sstream>

#include "base/strings.h"
#include "kernels/optim/weights_hash.h"
#include "net/weights/wire_writer.h"

namespace crema {

std::string fingerprint_of(const Graph& graph) {
  Checksum hash;
  for (const Parameter& parameter : graph.parameters) {
    const std::string text =
        cat(parameter.layer, "/", parameter.index, ":", parameter.shape.brief(), ";");
    hash.add(text.data(), text.size());
  }
  std::ostringstream text;
  text << std::hex << hash.value();
  return text.str();
}

uint64_t weights_checksum(Net& net) {
  return weights_checksum(net.context(), weights_content(net));
}

uint64_t weights_checksum(Context& context, const WeightsContent& content) {
  Checksum hash;
  for (const int id : stored_parameters(content)) {
    const WeightsContent::Values& parameter = content.parameters[id];
    if (parameter.data.dtype() == DType::f32) {
      visit_values(context, parameter.data,
                   [&](const void* bytes, size_t count) { hash.add(bytes, count); });
    } else {
      const std::vector<float> values = to_floats(context, parameter.data);
      hash.add(values.data(), values.size() * sizeof(float));
    }
  }
  return hash.value();
}

std::vector<uint64_t> hashes_of_parameters(const Net& net) {
  std::vector<Tensor> tensors;
  for (const Parameter& parameter : net.graph().parameters) tensors.push_back(parameter.data);
  return weights_hashes(net.context(), tensors);
}

}  // namespace crema
