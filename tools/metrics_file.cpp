#include "tools/metrics_file.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"

namespace crema {

namespace {

// Names as the log shows them, which is UTF-8, as JSON has to be.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : visible(text)) {
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

using google::protobuf::Value;
using Fields = google::protobuf::Map<std::string, Value>;

double number_at(const Fields& fields, const std::string& name) {
  const auto at = fields.find(name);
  return at == fields.end() ? 0 : at->second.number_value();
}

Metric metric_of(const google::protobuf::Struct& object) {
  const Fields& fields = object.fields();
  Metric metric;
  metric.iteration = static_cast<int64_t>(number_at(fields, "iteration"));
  metric.net = static_cast<int>(number_at(fields, "net"));
  metric.time = number_at(fields, "time");
  for (const auto& [name, value] : fields) {
    if (value.kind_case() != Value::kStringValue) continue;
    if (name == "kind") {
      metric.kind = value.string_value();
    } else if (name == "run") {
      metric.run = value.string_value();
    } else {
      metric.texts.emplace_back(name, value.string_value());
    }
  }
  std::sort(metric.texts.begin(), metric.texts.end());
  const auto values = fields.find("values");
  if (values == fields.end()) return metric;
  for (const auto& [name, value] : values->second.struct_value().fields()) {
    const bool real = value.kind_case() == Value::kNumberValue;
    metric.values.emplace_back(
        name, real ? value.number_value() : std::numeric_limits<double>::quiet_NaN());
  }
  std::sort(metric.values.begin(), metric.values.end());
  return metric;
}

// The run of a line, which a start moves to the end. Lines without a name: a start at 0 begins a
// run, any other goes on with the last.
Run& run_of(const Metric& metric, std::vector<Run>& runs, int& unnamed) {
  const bool starts = metric.kind == "start";
  if (metric.run.empty() && ((starts && metric.iteration == 0) || unnamed == 0)) ++unnamed;
  const std::string id = metric.run.empty() ? cat("unnamed-", unnamed) : metric.run;
  const auto at =
      std::find_if(runs.begin(), runs.end(), [&](const Run& run) { return run.id == id; });
  if (at == runs.end()) {
    runs.push_back({id, {}});
    return runs.back();
  }
  if (!starts) return *at;
  std::rotate(at, at + 1, runs.end());
  return runs.back();
}

void add(Run& run, Metric metric) {
  if (metric.kind == "start") {
    std::erase_if(run.metrics, [&](const Metric& old) {
      // A snapshot counts the updates done, and a test at that iteration belongs to the run that
      // goes on.
      return old.iteration > metric.iteration ||
             (old.iteration == metric.iteration && old.kind != "snapshot");
    });
  }
  run.metrics.push_back(std::move(metric));
}

}  // namespace

std::string Metric::text(const std::string& name) const {
  for (const auto& [key, value] : texts) {
    if (key == name) return value;
  }
  return "";
}

int64_t Run::iterations() const {
  int64_t most = 0;
  for (const Metric& metric : metrics) most = std::max(most, metric.iteration);
  return most;
}

double Run::last_loss() const {
  for (auto metric = metrics.rbegin(); metric != metrics.rend(); ++metric) {
    if (metric->kind != "train") continue;
    for (const auto& [name, value] : metric->values) {
      if (name == "loss") return value;
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::string Run::identity(const std::string& name) const {
  for (const Metric& metric : metrics) {
    if (metric.kind == "start") return metric.text(name);
  }
  return "";
}

const Metric* Run::with_weights(const std::string& hash) const {
  for (const Metric& metric : metrics) {
    if (metric.text("weights") == hash || metric.text("average") == hash) return &metric;
  }
  return nullptr;
}

std::string to_json(const Metric& metric) {
  std::string text = cat("{\"iteration\":", metric.iteration, ",\"kind\":", quoted(metric.kind));
  if (!metric.run.empty()) text += ",\"run\":" + quoted(metric.run);
  if (metric.kind == "test") text += cat(",\"net\":", metric.net);
  for (const auto& [name, value] : metric.texts) text += cat(",", quoted(name), ":", quoted(value));
  text += ",\"time\":" + number(metric.time);
  if (metric.values.empty()) return text + "}";
  std::vector<std::string> values;
  for (const auto& [name, value] : metric.values)
    values.push_back(quoted(name) + ":" + number(value));
  return text + ",\"values\":{" + join(values, ",") + "}}";
}

std::vector<Run> read_runs(const std::string& path) {
  const std::string content = read_file(path);
  const bool complete = ends_with(content, "\n");
  const std::vector<std::string> lines = split(content, '\n');
  std::vector<Run> runs;
  int unnamed = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    google::protobuf::Struct object;
    if (!google::protobuf::util::JsonStringToMessage(lines[i], &object).ok()) {
      if (i + 1 == lines.size() && !complete) break;
      fail(path, ":", i + 1, ": expected one JSON object, as `crema train` writes them");
    }
    Metric metric = metric_of(object);
    Run& run = run_of(metric, runs, unnamed);
    add(run, std::move(metric));
  }
  return runs;
}

}  // namespace crema
