// -run: a folder for everything about one run.
//   run.json            what was started, when, where and by which version
//   (tools/runs/run_record.h)
//   run.lock            what the result depends on: hashes of data, versions, machine
//   (tools/runs/run_lock.h)
//   solver.prototxt     the solver, and next to it its nets, with all flags applied
//   train.log           the log
//   metrics.jsonl, metrics.csv, iterations.csv
//   snapshots/          PREFIX_iter_N, PREFIX_best, PREFIX_confusion.csv
//   stop                create this file to end the run with a snapshot
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "solver/solver.h"
#include "tools/console/program_log.h"
#include "tools/flags/flags_of.h"

namespace crema {

class RunFolder {
 public:
  // `flags`: for run.json. Of them -run is a folder or "auto", for runs/NAME-1, runs/NAME-2 ...;
  // `name` is made safe for that. `snapshot` is -snapshot: with "auto" the newest of runs/NAME-K is
  // taken. Makes the folder with a run.json in it, unless it has a run, and begins to copy the log.
  // Error for a folder with a run if `snapshot` is empty, for one with other files, and while
  // another run writes there.
  RunFolder(ProgramLog& log, const FlagValues& flags, const std::string& name,
            const std::string& snapshot);
  // Without begin(), removes what it created.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  // Snapshots go to snapshots/, with names that begin as snapshot_prefix ends.
  void take_snapshots(SolverParameter* solver);

  // The training is about to start from what `file` says: writes its net, its solver and run.json.
  using SavedFlags = FlagsOf<"weights", "level", "stage", "precision">;
  void begin(SolverFile file, const SavedFlags& flags, Solver& solver);

  // snapshot_stop once the file `stop` is there, which it removes. Looks once a second.
  Action action();

 private:
  using Clock = std::chrono::steady_clock;
  void choose(const std::string& flag, const std::string& name, const std::string& snapshot);
  void make(const std::string& snapshot);
  int open_log();
  void remove_stale_request();
  void remove_what_was_made();

  ProgramLog& log_;
  FlagValues flags_;
  std::string path_, prefix_;
  std::vector<std::string> made_;     // folders, the outermost first
  std::vector<std::string> written_;  // names in the folder that this object may remove
  bool is_new_ = false, begun_ = false;
  Clock::time_point looked_ = Clock::now();
};

// `text` as a file name: of letters, digits, "-", "_" and ".", and not hidden; "" where nothing is
// left of it.
std::string safe_name(const std::string& text);

}  // namespace crema
