#include "tools/scale/step_profile.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/visible.h"

namespace crema {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKind = "crema scale";
constexpr int64_t most_elements = int64_t{1} << 40;

}  // namespace

double StepProfile::backward_seconds() const {
  return std::accumulate(backward.begin(), backward.end(), 0.0);
}

double StepProfile::iteration_seconds() const {
  return iter_size * (forward + backward_seconds()) + update;
}

int64_t StepProfile::gradient_elements() const {
  int64_t elements = 0;
  for (const GradientRange& range : gradients) elements += range.node >= 0 ? range.count : 0;
  return elements;
}

void check_profile(const StepProfile& profile) {
  const auto is_time = [](double seconds) { return std::isfinite(seconds) && seconds >= 0; };
  require(is_time(profile.forward) && is_time(profile.update) &&
              std::all_of(profile.backward.begin(), profile.backward.end(), is_time) &&
              profile.iteration_seconds() > 0,
          "a time is negative or not a number, or all are 0");
  require(profile.batch > 0 && profile.iter_size > 0 && profile.element_size > 0,
          "batch, iter_size and element_size must be positive");
  int64_t end = 0;
  for (const GradientRange& range : profile.gradients) {
    require(range.first >= end && range.count >= 0 && range.first % 16 == 0 &&
                std::max(range.first, range.count) < most_elements,
            "the gradients at ", range.first,
            " do not follow the previous ones, do not begin at a multiple of 16, or are too many");
    require(range.node >= -1 && range.node < static_cast<int>(profile.backward.size()),
            "gradients are of step ", range.node, ", but there are ", profile.backward.size());
    end = range.first + range.count;
  }
}

std::string json_of(const StepProfile& profile) {
  Json json;
  json["kind"] = kKind;
  json["net"] = visible(profile.net);
  json["device"] = visible(profile.device);
  json["batch"] = profile.batch;
  json["iter_size"] = profile.iter_size;
  json["element_size"] = profile.element_size;
  json["forward_seconds"] = profile.forward;
  json["backward_seconds"] = profile.backward;
  json["update_seconds"] = profile.update;
  json["gradients"] = Json::array();
  for (const GradientRange& range : profile.gradients)
    json["gradients"].push_back({range.first, range.count, range.node});
  return json.dump(1) + "\n";
}

StepProfile profile_of_json(const std::string& text, const std::string& path) {
  try {
    const Json json = Json::parse(text);
    require(json.is_object() && json.value("kind", "") == kKind, "it has no \"kind\": \"", kKind,
            "\"");
    StepProfile profile;
    json.at("net").get_to(profile.net);
    json.at("device").get_to(profile.device);
    json.at("batch").get_to(profile.batch);
    json.at("iter_size").get_to(profile.iter_size);
    json.at("element_size").get_to(profile.element_size);
    json.at("forward_seconds").get_to(profile.forward);
    json.at("backward_seconds").get_to(profile.backward);
    json.at("update_seconds").get_to(profile.update);
    for (const Json& range : json.at("gradients"))
      profile.gradients.push_back(
          {range.at(0).get<int64_t>(), range.at(1).get<int64_t>(), range.at(2).get<int>()});
    check_profile(profile);
    return profile;
  } catch (const std::exception& error) {
    fail(path, ": not the times that `crema scale -output FILE.json` writes: ", error.what());
  }
}

}  // namespace crema
