// `crema time -json`.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/visible.h"
#include "tools/measure/net_times.h"

namespace crema {

namespace {

using Json = nlohmann::ordered_json;

// With six digits: more of them are noise.
Json measured(double value) {
  if (!std::isfinite(value)) return {};
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

Json json_of(const Timing& timing) {
  return {{"count", timing.count},
          {"mean_ms", measured(timing.mean)},
          {"min_ms", measured(timing.least)},
          {"max_ms", measured(timing.most)},
          {"p50_ms", measured(timing.p50)},
          {"p90_ms", measured(timing.p90)},
          {"p99_ms", measured(timing.p99)}};
}

void add_share(const StepShare& share, Json* json) {
  (*json)["operations"] = share.operations;
  (*json)["bytes"] = share.bytes;
  (*json)["roofline"] = share.roofline > 0 ? measured(share.roofline) : Json();
  (*json)["limit"] = share.roofline == 0 ? Json() : share.arithmetic ? "arithmetic" : "memory";
}

Json json_of(const StepTimes::Side& side, const Limits& limits) {
  Json json = json_of(timing_of(side.milliseconds));
  add_share(share_of(side, limits), &json);
  return json;
}

Json json_of_all(const NetTimes& times, StepTimes::Side StepTimes::Step::*side,
                 const Limits& limits) {
  const StepShare share = share_of_all(times, side, limits);
  Json json = {{"p50_ms", measured(share.milliseconds)}};
  add_share(share, &json);
  return json;
}

Json json_of(const NetTimes& times, const Limits& limits) {
  Json json = {{"batch", times.batch},
               {"whole", json_of(times.whole)},
               {"group", times.group},
               {"samples_per_second", measured(times.samples_per_second())}};
  if (times.forward.count > 0) json["forward"] = json_of(times.forward);
  if (times.backward.count > 0) json["backward"] = json_of(times.backward);
  if (times.update.count > 0) json["update"] = json_of(times.update);
  json["memory_bytes"] = times.memory_bytes > 0 ? Json(times.memory_bytes) : Json();
  json["steps"] = Json::array();
  bool backward = false;
  for (const StepTimes::Step& step : times.steps) {
    Json one = {{"name", visible(step.name)}, {"layers", Json::array()}};
    for (const std::string& layer : step.layers) one["layers"].push_back(visible(layer));
    if (step.forward.runs) one["forward"] = json_of(step.forward, limits);
    if (step.backward.runs) one["backward"] = json_of(step.backward, limits);
    backward |= step.backward.runs;
    json["steps"].push_back(one);
  }
  json["all_steps"]["forward"] = json_of_all(times, &StepTimes::Step::forward, limits);
  if (backward)
    json["all_steps"]["backward"] = json_of_all(times, &StepTimes::Step::backward, limits);
  return json;
}

}  // namespace

std::string json_of(const TimeResult& result) {
  Json peak = {{"operations_per_second", measured(result.limits.operations)},
               {"bytes_per_second", measured(result.limits.bytes)},
               {"bandwidths", Json::array()}};
  for (const Limits::Bandwidth& bandwidth : result.limits.bandwidths)
    peak["bandwidths"].push_back(
        {{"bytes", bandwidth.amount}, {"bytes_per_second", measured(bandwidth.bytes)}});
  Json json = {{"kind", "crema time"},
               {"version", 1},
               {"mode", result.mode},
               {"net", visible(result.net)},
               {"model", visible(result.model)},
               {"phase", result.phase},
               {"device", visible(result.device)},
               {"threads", result.threads},
               {"precision", result.precision},
               {"warmup", result.warmup},
               {"peak", peak},
               {"runs", Json::array()}};
  for (const NetTimes& times : result.nets) json["runs"].push_back(json_of(times, result.limits));
  return json.dump(1);
}

}  // namespace crema
