#include "tools/model_flag.h"

#include "tools/assume.h"
#include "tools/flags.h"
#include "tools/switches.h"

namespace crema {

NetInput read_model(ProgramLog& log, Phase phase) {
  require(!FLAGS_model.empty(), "a net is needed: -model NET.prototxt");
  NetState outer;
  add_level_and_stages(&outer);
  NetInput input = read_net_input(FLAGS_model, phase, outer, log);
  SourceReplacer replacer(log, FLAGS_assume, FLAGS_batch);
  replacer.replace(input.net, input.options.where);
  replacer.finish();
  set_passes(&input.options);
  return input;
}

Phase phase_of_flag(Phase otherwise) {
  if (FLAGS_phase.empty()) return otherwise;
  require(FLAGS_phase == "TRAIN" || FLAGS_phase == "TEST", "-phase ", FLAGS_phase,
          ": expected TRAIN or TEST");
  return FLAGS_phase == "TRAIN" ? TRAIN : TEST;
}

void add_level_and_stages(NetState* state) {
  state->set_level(FLAGS_level);
  const std::vector<std::string> stages = split(FLAGS_stage, ',');
  for (const std::string& stage : stages) state->add_stage(stage);
  if (stages.empty()) state->add_stage("");
}

int64_t batch_of(const Net& net) {
  for (const Node& node : net.graph().nodes) {
    if (!node.bottoms.empty() || node.tops.empty() || !node.parameters.empty()) continue;
    const Shape& shape = net.graph().values[node.tops[0]].shape;
    if (shape.axes() > 0) return shape[0];
  }
  return 1;
}

int64_t records_of(const Net& net) {
  for (const Node& node : net.graph().nodes) {
    if (node.layer->records() > 0) return node.layer->records();
  }
  return 0;
}

Precision precision_of_flag(const Context& context, const std::string& of_file) {
  return precision_for(context, FLAGS_precision.empty() ? of_file : FLAGS_precision);
}

}  // namespace crema
