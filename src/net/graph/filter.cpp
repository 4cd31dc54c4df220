#include "net/graph/filter.h"

#include <algorithm>

#include "base/error.h"
#include "net/graph/taken_layers.h"

namespace crema {

namespace {

bool takes_part(const LayerParameter& layer, const NetState& state, Log& log) {
  const auto holds = [&](const NetStateRule& rule) {
    return rule_holds(state, rule, layer.name(), log);
  };
  if (layer.include_size() == 0) {
    return std::none_of(layer.exclude().begin(), layer.exclude().end(), holds);
  }
  return std::any_of(layer.include().begin(), layer.include().end(), holds);
}

std::string text_of(const char* field, const NetStateRule& rule) {
  std::string text = rule.ShortDebugString();
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return cat(field, " { ", text, " }");
}

// The rules that leave a layer out.
std::string leaving_rules(const LayerParameter& layer, const NetState& state) {
  std::vector<std::string> rules;
  for (const NetStateRule& rule : layer.include()) rules.push_back(text_of("include", rule));
  for (const NetStateRule& rule : layer.exclude()) {
    if (rule_holds(state, rule, layer.name(), silent_log()))
      rules.push_back(text_of("exclude", rule));
  }
  return join(rules, " and ");
}

std::string text_of(const NetState& state) {
  std::string text = cat("phase ", Phase_Name(state.phase()));
  if (state.level() != 0) text += cat(", level ", state.level());
  if (state.stage_size() > 0)
    text += cat(", stages ", join({state.stage().begin(), state.stage().end()}, ", "));
  return text;
}

}  // namespace

NetState net_state(Phase phase, const NetParameter& net, const NetState& outer) {
  NetState state;
  state.set_phase(phase);
  state.MergeFrom(net.state());
  state.MergeFrom(outer);
  return state;
}

bool rule_holds(const NetState& state, const NetStateRule& rule, const std::string& layer,
                Log& log) {
  const auto has = [&state](const std::string& stage) {
    return std::find(state.stage().begin(), state.stage().end(), stage) != state.stage().end();
  };
  // The wording is Caffe's, including "above" for both bounds: scripts search logs for it.
  const auto refuse = [&](const auto&... why) {
    log.info(cat("The NetState ", why..., " specified by a rule in layer ", layer));
    return false;
  };
  if (rule.has_phase() && rule.phase() != state.phase()) {
    return refuse("phase (", state.phase(), ") differed from the phase (", rule.phase(), ")");
  }
  if (rule.has_min_level() && state.level() < rule.min_level()) {
    return refuse("level (", state.level(), ") is above the min_level (", rule.min_level(), ")");
  }
  if (rule.has_max_level() && state.level() > rule.max_level()) {
    return refuse("level (", state.level(), ") is above the max_level (", rule.max_level(), ")");
  }
  for (const std::string& stage : rule.stage()) {
    if (!has(stage)) return refuse("did not contain stage '", stage, "'");
  }
  for (const std::string& stage : rule.not_stage()) {
    if (has(stage)) return refuse("contained a not_stage '", stage, "'");
  }
  return true;
}

std::string why_left_out(const NetParameter& net, const NetState& state, const std::string& blob,
                         const std::function<std::string(int)>& where) {
  for (int i = 0; i < net.layer_size(); ++i) {
    const LayerParameter& layer = net.layer(i);
    const auto& tops = layer.top();
    if (std::find(tops.begin(), tops.end(), blob) == tops.end() ||
        takes_part(layer, state, silent_log()))
      continue;
    return cat("layer \"", layer.name(), "\"", where ? cat(" (", where(i), ")") : "",
               " makes it, but ", leaving_rules(layer, state), " leaves that layer out in ",
               text_of(state));
  }
  return "";
}

NetParameter filter_net(const NetParameter& net, const NetState& state, Log& log,
                        std::vector<int>* kept, const std::function<std::string(int)>& where) {
  NetParameter result = net;
  std::vector<std::unique_ptr<LayerParameter>> layers = take_layers(&result);
  if (kept) kept->clear();
  for (int i = 0; i < net.layer_size(); ++i) {
    const LayerParameter& layer = net.layer(i);
    if (layer.include_size() > 0 && layer.exclude_size() > 0) {
      fail(where ? where(i) + ": " : "", "layer \"", layer.name(),
           "\": give include rules or exclude rules, not both");
    }
    if (!takes_part(layer, state, log)) continue;
    result.mutable_layer()->AddAllocated(layers[static_cast<size_t>(i)].release());
    if (kept) kept->push_back(i);
  }
  return result;
}

}  // namespace crema
