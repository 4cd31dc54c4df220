// A net against the one that was read from the written files.
#include "net/plan/plan.h"
#include "tools/exchange/verification.h"
#include "tools/inputs/random_inputs.h"

namespace crema {

Verification verify_net(Net& net, Net& again, const ComparedModel& compared, int draws) {
  BlobDifferences differences(net, compared.values);
  const auto made_by = [&](const std::string& layer) {
    for (const Node& node : again.graph().nodes)
      if (node.message.name() == layer) return node.tops[0];
    fail("the written net has no layer \"", layer, "\"");
  };
  const uint64_t seed = net.context().seed;
  for (int draw = 0; draw < draws; ++draw) {
    net.context().seed = seed + static_cast<uint64_t>(draw);
    fill_random_inputs(net);
    for (const Node& node : net.graph().nodes) {
      if (node.message.type() != "Input") continue;
      for (const int id : node.tops) {
        const std::string& blob = net.graph().values[id].blob;
        const std::vector<float> values = to_floats(net.context(), net.plan().value(id));
        if (again.has_blob(blob)) again.set_input(blob, values.data());
      }
    }
    for (Net* one : {&net, &again}) {
      one->clear_carried();
      one->forward(0);
    }
    size_t i = 0;
    for (const auto& [id, layer] : compared.makers)
      differences.add(i++, to_floats(net.context(), net.plan().value(id)),
                      to_floats(net.context(), again.plan().value(made_by(layer))));
  }
  net.context().seed = seed;
  return {"Crema", "from the files", "", differences.take()};
}

}  // namespace crema
