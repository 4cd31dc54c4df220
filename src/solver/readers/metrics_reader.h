// MetricsReader: writes metrics.jsonl (solver/readers/metrics_file.h) during training.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "base/log.h"
#include "solver/events/events.h"
#include "solver/readers/metrics_file.h"
#include "solver/readers/metrics_table.h"
#include "solver/readers/record_file.h"

namespace crema {

class MetricsReader : public EventReader {
 public:
  // Appends to `path` from the first event on. If that fails, it warns, and the training continues.
  MetricsReader(Log& log, std::string path)
      : log_(log), path_(std::move(path)), file_(log, path_) {}
  // For a folder that holds one run, metrics.jsonl and metrics.csv: a training that begins anew there
  // is the same run, and outdates what was there.
  struct OneRun {
    std::string folder;
  };
  MetricsReader(Log& log, const OneRun& run);
  ~MetricsReader() override { write_waiting_confusions(); }
  void read(const Event& event) override;

 private:
  void begin(const event::Start& start);
  void write(Metric metric);
  void take_confusion(const event::Confusion& confusion);
  void write_waiting_confusions();

  Log& log_;
  std::string path_;
  RecordFile file_;
  std::optional<MetricsTable> table_;  // of a run folder
  std::string run_;                    // name of the run
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<Metric> waiting_;  // a display, until its learning rate arrives
  // Confusions are long, so of those that nobody asked for not each is written. By test net: the
  // newest, if it has not been, and the iteration of the last one written.
  std::map<int, Metric> waiting_confusions_;
  std::map<int, int64_t> written_confusions_;
  size_t confusion_bytes_ = 0, other_bytes_ = 0;
};

}  // namespace crema
