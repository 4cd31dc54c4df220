#include "tools/metrics_file.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/error.h"
#include "base/files.h"

namespace crema {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", value);
  return text;
}

using Fields = google::protobuf::Map<std::string, google::protobuf::Value>;

double number_at(const Fields& fields, const std::string& name) {
  const auto at = fields.find(name);
  return at == fields.end() ? 0 : at->second.number_value();
}

std::string text_at(const Fields& fields, const std::string& name) {
  const auto at = fields.find(name);
  return at == fields.end() ? "" : at->second.string_value();
}

Metric metric_of(const google::protobuf::Struct& object) {
  const Fields& fields = object.fields();
  Metric metric;
  metric.iteration = static_cast<int64_t>(number_at(fields, "iteration"));
  metric.kind = text_at(fields, "kind");
  metric.net = static_cast<int>(number_at(fields, "net"));
  metric.file = text_at(fields, "file");
  metric.time = number_at(fields, "time");
  const auto values = fields.find("values");
  if (values == fields.end()) return metric;
  for (const auto& [name, value] : values->second.struct_value().fields()) {
    const bool real = value.kind_case() == google::protobuf::Value::kNumberValue;
    metric.values.emplace_back(
        name, real ? value.number_value() : std::numeric_limits<double>::quiet_NaN());
  }
  std::sort(metric.values.begin(), metric.values.end());
  return metric;
}

}  // namespace

std::string to_json(const Metric& metric) {
  std::string text = cat("{\"iteration\":", metric.iteration, ",\"kind\":", quoted(metric.kind));
  if (metric.kind == "test") text += cat(",\"net\":", metric.net);
  if (!metric.file.empty()) text += ",\"file\":" + quoted(metric.file);
  text += ",\"time\":" + number(metric.time);
  if (metric.values.empty()) return text + "}";
  std::vector<std::string> values;
  for (const auto& [name, value] : metric.values)
    values.push_back(quoted(name) + ":" + number(value));
  return text + ",\"values\":{" + join(values, ",") + "}}";
}

std::vector<Metric> read_metrics(const std::string& path) {
  const std::string content = read_file(path);
  const bool complete = ends_with(content, "\n");
  const std::vector<std::string> lines = split(content, '\n');
  std::vector<Metric> metrics;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    google::protobuf::Struct object;
    if (!google::protobuf::util::JsonStringToMessage(lines[i], &object).ok()) {
      if (i + 1 == lines.size() && !complete) break;
      fail(path, ":", i + 1, ": expected one JSON object, as `crema train` writes them");
    }
    Metric metric = metric_of(object);
    if (metric.kind == "start") {
      std::erase_if(metrics, [&](const Metric& old) {
        // A snapshot counts the updates done, and a test at that iteration belongs to the run that
        // goes on.
        return old.iteration > metric.iteration ||
               (old.iteration == metric.iteration && old.kind != "snapshot");
      });
    }
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

}  // namespace crema
