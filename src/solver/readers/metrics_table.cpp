#include "solver/readers/metrics_table.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"

namespace crema {

namespace {

// Between attempts to write a whole table, which grows with the training.
constexpr auto kPause = std::chrono::seconds(5);

std::string cell(const std::string& text) {
  std::string shown = visible(text);
  if (shown.find_first_of(",\"") == std::string::npos) return shown;
  for (size_t at = 0; (at = shown.find('"', at)) != std::string::npos; at += 2)
    shown.insert(at, 1, '"');
  return "\"" + shown + "\"";
}

// With as many digits as metrics.jsonl has.
std::string cell(double value) {
  if (!std::isfinite(value)) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", value);
  return text;
}

}  // namespace

std::string csv_rows(const Metric& metric) {
  if (metric.kind == "start") return "";  // what is known of the run then is no value over time
  const std::string net = metric.kind == "test" ? cat(metric.net) : "";
  const std::string start = cat(cell(metric.run), ",", metric.iteration, ",", cell(metric.kind),
                                ",", net, ",", cell(metric.time), ",");
  std::string rows;
  for (const auto& [name, value] : metric.values)
    rows += start + cell(name) + "," + cell(value) + "\n";
  return rows;
}

bool outdates_others(const Metric& metric) {
  return metric.kind == "start" || metric.kind == "rollback";
}

void MetricsTable::write_anew(const std::string& metrics) {
  std::string rows = "run,iteration,kind,net,time,name,value\n";
  for (const Run& run : read_runs(metrics))
    for (const Metric& metric : run.metrics) rows += csv_rows(metric);
  file_.close();
  write_file_atomically(file_.path(), rows);
}

void MetricsTable::add(const Metric& metric, const std::string& metrics, bool has_all) {
  const auto now = std::chrono::steady_clock::now();
  stale_ |= !has_all || outdates_others(metric);
  if (!has_all || (broken_ && now < next_try_ && metric.kind != "end")) return;
  try {
    if (stale_) {
      write_anew(metrics);
    } else if (const int problem = file_.append(csv_rows(metric)); problem != 0) {
      fail(file_.path(), ": cannot write: ", std::strerror(problem));
    }
    stale_ = false;
    if (std::exchange(broken_, false)) warnings_.works_again(file_.path(), "");
  } catch (const Error& error) {
    stale_ = broken_ = true;
    next_try_ = now + kPause;
    warnings_.failed(error.what());
  }
}

}  // namespace crema
