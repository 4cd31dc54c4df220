#include "tools/runs/test_json.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "base/visible.h"

namespace crema {

namespace {

using Json = nlohmann::ordered_json;

// With the digits that a float has: 0.9921, not 0.99210000038.
Json json_number(double value) {
  if (!std::isfinite(value)) return {};
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", value);
  return std::strtod(text, nullptr);
}

Json json_values(const std::vector<OutputValue>& values) {
  Json object = Json::object();
  std::map<std::string, int> count;
  for (const OutputValue& value : values) ++count[value.name];
  for (const OutputValue& value : values) {
    Json& entry = object[visible(value.name)];
    if (count[value.name] == 1) {
      entry = json_number(value.value);
    } else {
      entry.push_back(json_number(value.value));
    }
  }
  return object;
}

double ratio(int64_t part, int64_t whole) {
  return whole == 0 ? std::nan("") : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string json_of(const TestAnswer& answer) {
  Json object = {{"iterations", answer.iterations},
                 {"seconds", json_number(answer.seconds)},
                 {"loss", json_number(answer.loss)},
                 {"outputs", json_values(answer.outputs)}};
  if (!answer.metrics.empty()) object["metrics"] = json_values(answer.metrics);
  if (!answer.confusion) return object.dump();
  const int64_t classes = answer.confusion->classes;
  const std::vector<int64_t>& counts = answer.confusion->counts;
  Json table = Json::array(), each = Json::array();
  for (int64_t c = 0; c < classes; ++c) {
    int64_t labelled = 0, predicted = 0;
    Json row = Json::array();
    for (int64_t other = 0; other < classes; ++other) {
      labelled += counts[c * classes + other];
      predicted += counts[other * classes + c];
      row.push_back(counts[c * classes + other]);
    }
    const int64_t right = counts[c * classes + c];
    Json one = Json::object();
    one["class"] = c;
    if (static_cast<size_t>(c) < answer.class_names.size())
      one["name"] = visible(answer.class_names[c]);
    one["records"] = labelled;
    one["precision"] = json_number(ratio(right, predicted));
    one["recall"] = json_number(ratio(right, labelled));
    one["f1"] = json_number(ratio(2 * right, labelled + predicted));
    each.push_back(one);
    table.push_back(row);
  }
  object["classes"] = each;
  object["confusion"] = table;
  return object.dump();
}

}  // namespace crema
