// metrics.csv: the values of metrics.jsonl as one long table for spreadsheets and pandas, a row for
// each value:
//   run,iteration,kind,net,time,name,value
//   5f0c92ab,100,train,,1.52,loss,0.31
// net is that of a "test", else empty. Names with commas or quotes stand in quotes (RFC 4180). A
// value that is nan or infinite is empty, as a gap in a plot is.
#pragma once

#include <fstream>
#include <string>

#include "base/log.h"
#include "solver/readers/metrics_file.h"

namespace crema {

// The rows of one line of metrics.jsonl; none for a start, or where it has no values.
std::string csv_rows(const Metric& metric);

class MetricsTable {
 public:
  MetricsTable(Log& log, std::string path) : log_(log), path_(std::move(path)) {}

  // Adds a line that has just been written to `metrics`. A start or a rollback outdates other lines:
  // the table is then written anew from those of `metrics` that are valid. If the file cannot be
  // written, it warns once, and the table ends there.
  void add(const Metric& metric, const std::string& metrics);

 private:
  void write_anew(const std::string& metrics);

  Log& log_;
  std::string path_;
  std::ofstream file_;
  bool broken_ = false;
};

}  // namespace crema
