#include "solver/readers/metrics_file.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"

namespace crema {

namespace {

using Json = nlohmann::ordered_json;

// Names as the log shows them: in UTF-8, as JSON requires.
std::string quoted(const std::string& text) { return Json(visible(text)).dump(); }

// The same of a text of several lines.
std::string quoted_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n')) lines.push_back(visible(line));
  return Json(join(lines, "\n")).dump();
}

std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", value);
  return text;
}

Metric metric_of(const Json& object) {
  Metric metric;
  metric.iteration = object.value("iteration", metric.iteration);
  metric.net = object.value("net", metric.net);
  metric.time = object.value("time", metric.time);
  for (const auto& [name, value] : object.items()) {
    if (!value.is_string()) continue;
    if (name == "kind") {
      metric.kind = value;
    } else if (name == "run") {
      metric.run = value;
    } else {
      metric.texts.emplace_back(name, value);
    }
  }
  if (const auto counts = object.find("counts"); counts != object.end())
    metric.counts = counts->get<std::vector<std::vector<int64_t>>>();
  if (const auto values = object.find("values"); values != object.end()) {
    metric.values.reserve(values->size());  // there are many such lines
    for (const auto& [name, value] : values->get_ref<const Json::object_t&>()) {
      metric.values.emplace_back(
          name, value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
    }
  }
  return metric;
}

// The run of a line; a start moves it to the end. For lines without a name, a start at 0 begins a
// run, any other continues the last one.
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

bool drops_outdated(const Metric& metric) {
  return metric.kind == "start" || metric.kind == "rollback";
}

void add_metric(Run& run, Metric metric) {
  if (drops_outdated(metric)) {
    std::erase_if(run.metrics, [&](const Metric& old) {
      // A snapshot counts the updates done, and a test at that iteration belongs to the continued
      // run.
      return old.iteration > metric.iteration || (old.iteration == metric.iteration &&
                                                  old.kind != "snapshot" && old.kind != "rollback");
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
  int64_t maximum = 0;
  for (const Metric& metric : metrics) maximum = std::max(maximum, metric.iteration);
  return maximum;
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
  if (metric.kind == "test" || metric.kind == "confusion") text += cat(",\"net\":", metric.net);
  for (const auto& [name, value] : metric.texts)
    text += cat(",", quoted(name), ":", quoted_lines(value));
  text += ",\"time\":" + number(metric.time);
  if (!metric.counts.empty()) text += ",\"counts\":" + Json(metric.counts).dump();
  if (metric.values.empty()) return text + "}";
  std::vector<std::string> values;
  for (const auto& [name, value] : metric.values)
    values.push_back(quoted(name) + ":" + number(value));
  return text + ",\"values\":{" + join(values, ",") + "}}";
}

void RunsInText::add_line(std::string_view line, bool cut) {
  ++lines_;
  if (trim(line).empty()) return;
  require(lines_ <= limits_.lines, path_, ":", lines_, ": more than ", limits_.lines,
          " lines; the rest is not read");
  Metric metric;
  try {
    metric = metric_of(Json::parse(line));
  } catch (const Json::exception&) {
    if (cut) return;
    fail(path_, ":", lines_, ": expected one JSON object, as `crema train` writes them");
  }
  Run& run = run_of(metric, runs_, unnamed_);
  require(runs_.size() <= limits_.runs, path_, ":", lines_, ": more than ", limits_.runs,
          " runs; the rest is not read");
  if (drops_outdated(metric)) looked_at_ += run.metrics.size();
  require(looked_at_ <= limits_.restarts, path_, ":", lines_,
          ": too many starts and rollbacks; the rest is not read");
  add_metric(run, std::move(metric));
}

void RunsInText::add(std::string_view text) {
  size_t from = 0;
  for (size_t end; (end = text.find('\n', from)) != std::string_view::npos; from = end + 1) {
    const std::string_view part = text.substr(from, end - from);
    if (rest_.empty()) {
      add_line(part, false);
    } else {
      add_line(std::exchange(rest_, "").append(part), false);
    }
  }
  rest_ += text.substr(from);
  require(rest_.size() <= limits_.line, path_, ":", lines_ + 1, ": a line of more than ",
          size_text(limits_.line), "; expected one JSON object, as `crema train` writes them");
}

void RunsInText::finish() { add_line(std::exchange(rest_, ""), true); }

std::vector<Run> read_runs(const std::string& path) {
  RunsInText text(path);
  text.add(read_file(path));
  text.finish();
  return text.runs();
}

}  // namespace crema
