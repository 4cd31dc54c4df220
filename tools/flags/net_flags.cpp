#include "tools/flags/net_flags.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tools/inputs/assume.h"

namespace crema {

NetInput read_net(ProgramLog& log, const NetFlags& flags, Phase phase) {
  require(!flags.model.empty(), "a net is needed: -model NET.prototxt");
  NetState outer;
  add_level_and_stages(flags, &outer);
  Settings settings(flags.set);
  NetInput input = read_net_input(flags.model, phase, outer, log.library(), &settings);
  settings.require_used();
  return input;
}

NetInput read_model(ProgramLog& log, const ModelFlags& flags, Phase phase) {
  NetInput input = read_net(log, flags, phase);
  SourceReplacer replacer(log, flags.assume, flags.batch);
  replacer.replace(input.net, input.options.where);
  replacer.finish();
  set_passes(flags, &input.options);
  return input;
}

Phase phase_of_flag(const std::string& phase, Phase otherwise) {
  if (phase.empty()) return otherwise;
  require(phase == "TRAIN" || phase == "TEST", "-phase ", phase, ": expected TRAIN or TEST");
  return phase == "TRAIN" ? TRAIN : TEST;
}

void add_level_and_stages(const StateFlags& flags, NetState* state) {
  state->set_level(flags.level);
  const std::vector<std::string> stages = split(flags.stage, ',');
  for (const std::string& stage : stages) state->add_stage(stage);
  if (stages.empty()) state->add_stage("");
}

Precision precision_of_flag(const Context& context, const std::string& precision,
                            const std::string& of_file) {
  return precision_for(context, precision.empty() ? of_file : precision);
}

Switches switches_of_flag(const std::string& off) {
  Switches switches;
  const std::vector<std::pair<std::string, bool*>> known = {
      {"fuse", &switches.fuse},           {"format", &switches.format},
      {"memory", &switches.memory},       {"overlap", &switches.overlap},
      {"recompute", &switches.recompute}, {"resident", &switches.resident},
      {"capture", &switches.capture},     {"micro_batches", &switches.micro_batches}};
  std::vector<std::string> names;
  for (const auto& [name, on] : known) names.push_back(name);
  for (const std::string& part : split(off, ',')) {
    const std::string wanted(trim(part));
    const auto found = std::find(names.begin(), names.end(), wanted);
    require(found != names.end(), "-off ", off, ": there is no \"", wanted, "\"",
            did_you_mean(wanted, names), "; it takes ", join(names, ", "));
    *known[found - names.begin()].second = false;
  }
  return switches;
}

void set_passes(const PassFlags& flags, NetOptions* options) {
  const Switches switches = switches_of_flag(flags.off);
  options->fuse = switches.fuse;
  options->format = switches.format;
  options->reuse_memory = switches.memory;
  options->micro_batches = switches.micro_batches;
  options->overlap = switches.overlap;
  options->capture = switches.capture;
  require(flags.recompute == "auto" || flags.recompute == "all", "-recompute ", flags.recompute,
          ": expected auto or all (-off recompute: nothing)");
  if (!switches.recompute) options->recompute = Recompute::off;
  if (flags.recompute == "auto") return;
  require(switches.recompute, "-recompute all and -off recompute contradict each other");
  options->recompute = Recompute::all;
  options->overlap = false;  // which keeps values for longer
}

WeightsMode weights_mode_of_flag(const std::string& mode) {
  require(mode == "strict" || mode == "match", "-weights_mode ", mode,
          ": expected strict or match");
  return mode == "match" ? WeightsMode::match : WeightsMode::strict;
}

void load_weights_of_flags(const WeightFlags& flags, Net& net) {
  LoadOptions options;
  options.mode = weights_mode_of_flag(flags.weights_mode);
  for (const std::string& path : split(flags.weights, ',')) load_weights(net, path, options);
}

}  // namespace crema
