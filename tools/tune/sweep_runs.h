// SweepRuns: the runs of a sweep, as processes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/console/program_log.h"
#include "tools/tune/child_process.h"
#include "tools/tune/sweep_table.h"

namespace crema {

class Signals;

// Where runs execute: a card for each, or a part of the processors.
struct SweepPlaces {
  std::vector<int> gpus;
  int jobs = 1;
};

class SweepRuns {
 public:
  // `chosen`: the runs of the record that are wanted.
  SweepRuns(ProgramLog& log, SweepPlaces places, std::string folder, SweepRecord record,
            std::vector<size_t> chosen, SweepScore score)
      : log_(log),
        places_(std::move(places)),
        folder_(std::move(folder)),
        record_(std::move(record)),
        chosen_(std::move(chosen)),
        score_(std::move(score)) {}

  // Trains those that are not done, until a signal requests a stop: then the active ones write
  // their snapshots and end. The record is written after each change.
  void run();
  bool stopped() const { return stopped_; }
  std::vector<SweepResult> results() const;

 private:
  struct Running {
    int slot = 0;
    std::unique_ptr<ChildProcess> process;
  };
  void save() const { write_sweep(record_, folder_ + "/sweep.json"); }
  int free_slot() const;
  void start(size_t index);
  void look(Signals& signals);
  void finish(SweepRun& run, int code, const std::string& message);
  void show();

  ProgramLog& log_;
  const SweepPlaces places_;
  const std::string folder_;
  SweepRecord record_;
  const std::vector<size_t> chosen_;
  const SweepScore score_;
  std::map<size_t, Running> running_;  // by index of record_.runs
  bool stopped_ = false;
};

}  // namespace crema
