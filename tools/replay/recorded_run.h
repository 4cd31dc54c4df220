// RecordedRun: what a run folder says of its run, so that its iterations can be computed again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/prototxt/prototxt.h"
#include "solver/readers/iterations_file.h"
#include "tools/flags/flag_reader.h"
#include "tools/runs/run_lock.h"

namespace crema {

class RecordedRun {
 public:
  // Error for a folder without a run, and for a run that cannot be repeated: of several ranks, or of
  // random data (-assume).
  explicit RecordedRun(const std::string& folder);

  const std::string& folder() const { return folder_; }  // absolute
  const RecordedIterations& iterations() const { return iterations_; }
  // Relative paths of the run count from there; "": that folder is gone.
  const std::string& started_in() const { return started_in_; }

  // The flags that the run had. Those of a command, `given`, take precedence; -gpu is left out, with
  // a note, where the machine has none.
  FlagValues flags(const FlagValues& given, std::vector<std::string>* notes) const;

  // Where to start for an iteration: the last state that is not after it, or the run's own start.
  struct Start {
    std::string state;  // "": the start
    int64_t iteration = 0;
  };
  Start start_for(int64_t iteration) const;
  // The same for what is there after so many iterations.
  Start state_for(int64_t iterations) const;
  Start newest_state() const;
  struct Rollback {
    int64_t from = 0, to = 0;  // the iteration that diverged, and that with which it went on
  };
  // Those between that start and an iteration, in the order in which they happened.
  std::vector<Rollback> rollbacks(const Start& start, int64_t iteration) const;

  // Its solver as the folder has it.
  SolverFile written_solver(std::shared_ptr<Settings> settings = nullptr) const;
  // Its solver as it was in an iteration, without tests and files. `prefix`: of snapshots that a caller asks for.
  SolverFile solver(const std::string& prefix, int64_t iteration) const;
  // The first iteration from which on a resume has changed that solver, and how; end: none.
  struct Change {
    int64_t iteration = 0;
    std::vector<std::string> fields = {};  // "base_lr was 0.01 and is 0.02"
  };
  Change next_change(int64_t iteration) const;
  // "from iteration 20 on the run is that of `crema train ...`" for each resume after an iteration.
  std::vector<std::string> resumes_after(int64_t iteration) const;

  // What is not as in the run: "threads is 1 (was 2)". `here`: lock_of_program() of this one. The data
  // sets are read once more.
  std::vector<std::string> differences(const RunLock& here) const;
  // Of these, the ones of data sets. Relative paths count from the working directory.
  std::vector<std::string> data_differences() const;
  // Whether training started from other weights than those with this hash: the difference, or "".
  std::string weights_difference(const std::string& hash) const;
  // Of its last start; null for a run without run.lock.
  const RunLock& lock() const { return lock_; }
  // Files of the run that could not be read, and what follows from that.
  const std::vector<std::string>& notes() const { return notes_; }
  // Iterations per second; 0: unknown.
  double speed() const { return speed_; }

 private:
  struct Resume {
    int64_t iteration = 0;
    std::string command;
  };
  std::string recipe_of(int64_t iteration) const;

  std::string folder_, started_in_;
  RunLock lock_, first_lock_;
  std::vector<std::string> resumed_with_;  // what later starts had that those before had not
  RecordedIterations iterations_;
  std::vector<Rollback> rollbacks_;
  std::vector<Start> states_;    // in the order of their iterations
  std::vector<Resume> resumes_;  // those that later ones do not outdate
  FlagValues flags_;
  std::optional<int64_t> seed_;  // of the first start
  std::string begun_from_;       // the snapshot of another run with which this one began; "": none
  std::vector<std::string> notes_;  // files that could not be read
  std::string version_, built_with_, device_, host_;
  double speed_ = 0;
};

}  // namespace crema
