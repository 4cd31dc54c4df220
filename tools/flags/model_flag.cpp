#include "tools/flags/model_flag.h"

#include "tools/flags/flags.h"
#include "tools/flags/settings_flag.h"
#include "tools/flags/switches.h"
#include "tools/inputs/assume.h"

namespace crema {

NetInput read_net(ProgramLog& log, Phase phase) {
  require(!FLAGS_model.empty(), "a net is needed: -model NET.prototxt");
  NetState outer;
  add_level_and_stages(&outer);
  Settings settings(settings_of_flag());
  NetInput input = read_net_input(FLAGS_model, phase, outer, log.library(), &settings);
  settings.require_used();
  return input;
}

NetInput read_model(ProgramLog& log, Phase phase) {
  NetInput input = read_net(log, phase);
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

Precision precision_of_flag(const Context& context, const std::string& of_file) {
  return precision_for(context, FLAGS_precision.empty() ? of_file : FLAGS_precision);
}

}  // namespace crema
