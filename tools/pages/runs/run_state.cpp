#include "tools/pages/runs/run_state.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "base/system.h"
#include "tools/pages/runs/run_curves.h"
#include "tools/pages/runs/run_file.h"

namespace crema {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kPatience = 60;  // seconds without a line that mean nothing

// How the last start of a run ended; no word: it has recorded no end.
RunState end_of_run(const Run& run) {
  if (has_diverged(run)) return {"diverged", "diverged", false};
  const Metric* end = nullptr;
  for (auto metric = run.metrics.rbegin(); metric != run.metrics.rend(); ++metric) {
    if (metric->kind == "end") end = &*metric;
    if (metric->kind == "early_stop" && end) return {"stopped", "stopped early", false};
    if (metric->kind == "start") break;
  }
  if (!end) return {};
  if (!end->text("why").empty()) return {"stopped", end->text("why"), false};
  return {"ended", "ended", false};
}

// The longest time between two of the last lines: displays may be far apart.
double usual_pause(const Run& run) {
  double pause = 0;
  const size_t from = run.metrics.size() > 50 ? run.metrics.size() - 50 : 1;
  for (size_t i = from; i < run.metrics.size(); ++i)
    pause = std::max(pause, run.metrics[i].time - run.metrics[i - 1].time);
  return pause;
}

// Whether run.json names a process of this machine that has ended.
bool process_is_gone(const std::string& folder) {
  const auto record =
      nlohmann::json::parse(end_of_run_file(folder + "/run.json", size_t{1} << 20), nullptr, false);
  if (!record.is_object()) return false;
  const auto resumptions = record.find("resumptions");
  const bool resumed =
      resumptions != record.end() && resumptions->is_array() && !resumptions->empty();
  const nlohmann::json& start = resumed ? resumptions->back() : record;
  if (!start.is_object() || !start.contains("pid") || !start["pid"].is_number_integer())
    return false;
  const int64_t pid = start["pid"];
  if (!start.contains("host") || start["host"] != host_name() || pid <= 0 ||
      pid > std::numeric_limits<pid_t>::max())
    return false;
  return kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

std::string clock_text(std::time_t time, std::time_t now) {
  std::tm fields{};
  localtime_r(&time, &fields);
  char text[32];
  std::strftime(text, sizeof text, now - time < 12 * 3600 ? "%H:%M" : "%Y-%m-%d %H:%M", &fields);
  return text;
}

double median(std::vector<double> values) {
  if (values.empty()) return kNone;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void add_test(RunFigures& figures, const Metric& metric) {
  for (const auto& [name, value] : metric.values) {
    const std::string shown = metric.net > 0 ? cat("#", metric.net, ": ", name) : name;
    auto at = std::find_if(figures.tests.begin(), figures.tests.end(),
                           [&](const TestFigure& figure) { return figure.name == shown; });
    if (at == figures.tests.end()) {
      figures.tests.push_back({shown, value, kNone, 0});
      at = figures.tests.end() - 1;
    }
    at->last = value;
    if (!is_better(name, value, at->best)) continue;
    at->best = value;
    at->best_at = metric.iteration;
  }
}

}  // namespace

// Such a run has the loss as its last line, without a learning rate.
bool has_diverged(const Run& run) {
  if (run.metrics.empty()) return false;
  const Metric& last = run.metrics.back();
  return last.kind == "train" && last.values.size() == 1 && std::isnan(last.values[0].second);
}

RunState recorded_state(const Run& run) {
  const RunState end = end_of_run(run);
  return end.word.empty() ? RunState{"silent", "no end recorded", false} : end;
}

RunState state_of(const PageRun& run, std::time_t now) {
  const RunState end = end_of_run(*run.run);
  if (!end.word.empty()) return end;
  const std::time_t last = std::max(changed_in_run(run.folder + "/metrics.jsonl"),
                                    changed_in_run(run.folder + "/train.log"));
  const double silent = static_cast<double>(now - last);
  if (silent < kPatience + 3 * usual_pause(*run.run) && !process_is_gone(run.folder))
    return {"running", "running", true};
  return {"silent", "silent since " + clock_text(last, now), false};
}

std::string started_text(const Run& run, std::time_t now) {
  std::tm fields{};
  if (!strptime(run.identity("started").c_str(), "%Y-%m-%dT%H:%M:%SZ", &fields)) return "";
  return clock_text(timegm(&fields), now);
}

RunFigures figures_of(const Run& run) {
  RunFigures figures{.iterations = run.iterations(), .loss = run.last_loss()};
  double before = 0, waited = 0;
  bool waits = false;
  std::vector<double> speeds;
  double displayed = 0;
  for (const Metric& metric : run.metrics) {
    // Each start counts time from zero.
    if (metric.time < before) {
      figures.seconds += before;
      displayed = 0;
    }
    before = metric.time;
    if (metric.kind == "test") add_test(figures, metric);
    if (metric.kind != "train") continue;
    for (const auto& [name, value] : metric.values) {
      if (name == "iterations_per_second" && std::isfinite(value)) speeds.push_back(value);
      if (name != "data_wait" || !std::isfinite(value)) continue;
      waited += value * (metric.time - displayed);
      waits = true;
    }
    displayed = metric.time;
  }
  figures.seconds += before;
  constexpr size_t kLastDisplays = 20;
  if (speeds.size() > kLastDisplays) speeds.erase(speeds.begin(), speeds.end() - kLastDisplays);
  figures.speed = median(speeds);
  figures.waiting = waits && figures.seconds > 0 ? waited / figures.seconds : kNone;
  return figures;
}

std::string duration(double seconds) {
  char text[32];
  const auto minutes = static_cast<int64_t>(std::lround(seconds / 60));
  if (seconds < 120) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else if (seconds < 3600) {
    std::snprintf(text, sizeof text, "%.1f min", seconds / 60);
  } else {
    std::snprintf(text, sizeof text, "%lld h %02lld min", static_cast<long long>(minutes / 60),
                  static_cast<long long>(minutes % 60));
  }
  return text;
}

}  // namespace crema
