// metrics.csv: the values of metrics.jsonl as one long table for spreadsheets and pandas, a row for
// each value:
//   run,iteration,kind,net,time,name,value
//   5f0c92ab,100,train,,1.52,loss,0.31
// net is that of a "test", else empty. Names with commas or quotes stand in quotes (RFC 4180). A
// value that is nan or infinite is empty, as a gap in a plot is.
#pragma once

#include <chrono>
#include <string>

#include "base/append_file.h"
#include "base/log.h"
#include "solver/readers/metrics_file.h"
#include "solver/readers/record_file.h"

namespace crema {

// The rows of one line of metrics.jsonl; none for a start, or where it has no values.
std::string csv_rows(const Metric& metric);
// A start or a rollback: earlier lines of the run are no longer part of its course.
bool outdates_others(const Metric& metric);

class MetricsTable {
 public:
  MetricsTable(Log& log, std::string path) : warnings_(log), file_(std::move(path)) {}

  // Adds a line that has just been written to `metrics`. If others are outdated by it, the table is
  // written anew from those of `metrics` that are valid. The same happens, some seconds later, where
  // the table could not be written or `metrics` does not have all lines yet.
  void add(const Metric& metric, const std::string& metrics, bool has_all);

 private:
  void write_anew(const std::string& metrics);

  WriteWarnings warnings_;
  AppendFile file_;
  bool stale_ = false;   // the table lacks rows
  bool broken_ = false;  // since it could not be written
  std::chrono::steady_clock::time_point next_try_;
};

}  // namespace crema
