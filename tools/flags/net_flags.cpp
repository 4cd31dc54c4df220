#include "tools/flags/net_flags.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tools/flags/flags.h"
#include "tools/inputs/assume.h"

namespace crema {

NetFlags net_flags(const FlagValues& given) {
  NetFlags flags;
  flags.model = FLAGS_model;
  if (const auto set = given.find("set"); set != given.end()) flags.settings = set->second;
  flags.level = FLAGS_level;
  flags.stages = split(FLAGS_stage, ',');
  flags.assume = FLAGS_assume;
  flags.batch = FLAGS_batch;
  return flags;
}

NetInput read_net(ProgramLog& log, const NetFlags& flags, Phase phase) {
  require(!flags.model.empty(), "a net is needed: -model NET.prototxt");
  NetState outer;
  add_level_and_stages(flags, &outer);
  Settings settings(flags.settings);
  NetInput input = read_net_input(flags.model, phase, outer, log.library(), &settings);
  settings.require_used();
  return input;
}

NetInput read_model(ProgramLog& log, const NetFlags& flags, Phase phase) {
  NetInput input = read_net(log, flags, phase);
  SourceReplacer replacer(log, flags.assume, flags.batch);
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

void add_level_and_stages(const NetFlags& flags, NetState* state) {
  state->set_level(flags.level);
  for (const std::string& stage : flags.stages) state->add_stage(stage);
  if (flags.stages.empty()) state->add_stage("");
}

Precision precision_of_flag(const Context& context, const std::string& of_file) {
  return precision_for(context, FLAGS_precision.empty() ? of_file : FLAGS_precision);
}

Switches switches_of_flag() {
  Switches switches;
  const std::vector<std::pair<std::string, bool*>> known = {
      {"fuse", &switches.fuse},           {"format", &switches.format},
      {"memory", &switches.memory},       {"overlap", &switches.overlap},
      {"recompute", &switches.recompute}, {"resident", &switches.resident},
      {"capture", &switches.capture}};
  std::vector<std::string> names;
  for (const auto& [name, on] : known) names.push_back(name);
  for (const std::string& part : split(FLAGS_off, ',')) {
    const std::string wanted(trim(part));
    const auto found = std::find(names.begin(), names.end(), wanted);
    require(found != names.end(), "-off ", FLAGS_off, ": there is no \"", wanted, "\"",
            did_you_mean(wanted, names), "; it takes ", join(names, ", "));
    *known[found - names.begin()].second = false;
  }
  return switches;
}

void set_passes(NetOptions* options) {
  const Switches switches = switches_of_flag();
  options->fuse = switches.fuse;
  options->format = switches.format;
  options->reuse_memory = switches.memory;
  options->overlap = switches.overlap;
  require(FLAGS_recompute == "auto" || FLAGS_recompute == "all", "-recompute ", FLAGS_recompute,
          ": expected auto or all (-off recompute: nothing)");
  if (!switches.recompute) options->recompute = Recompute::off;
  if (FLAGS_recompute == "auto") return;
  require(switches.recompute, "-recompute all and -off recompute contradict each other");
  options->recompute = Recompute::all;
  options->overlap = false;  // which keeps values for longer
}

WeightsMode weights_mode_of_flag() {
  require(FLAGS_weights_mode == "strict" || FLAGS_weights_mode == "match", "-weights_mode ",
          FLAGS_weights_mode, ": expected strict or match");
  return FLAGS_weights_mode == "match" ? WeightsMode::match : WeightsMode::strict;
}

void load_weights_of_list(Net& net, const std::string& files) {
  LoadOptions options;
  options.mode = weights_mode_of_flag();
  for (const std::string& path : split(files, ',')) load_weights(net, path, options);
}

void load_weights_of_flag(Net& net) { load_weights_of_list(net, FLAGS_weights); }

}  // namespace crema
