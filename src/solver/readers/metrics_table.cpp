#include "solver/readers/metrics_table.h"

#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"

namespace crema {

namespace {

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

void MetricsTable::write_anew(const std::string& metrics) {
  std::string rows = "run,iteration,kind,net,time,name,value\n";
  for (const Run& run : read_runs(metrics))
    for (const Metric& metric : run.metrics) rows += csv_rows(metric);
  file_.close();
  write_file_atomically(path_, rows);
  file_.open(path_, std::ios::app);
}

void MetricsTable::add(const Metric& metric, const std::string& metrics) {
  if (broken_) return;
  try {
    if (metric.kind == "start" || metric.kind == "rollback") {
      write_anew(metrics);
    } else {
      file_ << csv_rows(metric) << std::flush;
    }
    require(static_cast<bool>(file_), path_, ": cannot write");
  } catch (const Error& error) {
    broken_ = true;
    log_.warning(cat(error.what(), ": this table of the metrics ends here."));
  }
}

}  // namespace crema
