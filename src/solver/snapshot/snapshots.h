// Snapshots: when a run writes them, which of them stay, and from which one it can go on. Writing
// makes the training wait for a copy only; a thread writes the files from that (snapshot_writer), and
// what has become of them is reported between two iterations.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "solver/events/events.h"
#include "solver/fields/epoch_fields.h"
#include "solver/snapshot/snapshot.h"
#include "solver/snapshot/snapshot_writer.h"

namespace crema {

class Optimizer;
class WatchedOutput;

class Snapshots {
 public:
  // All of it must outlive this.
  struct Run {
    Context& context;
    const SolverFile& file;
    Net& net;
    Optimizer& optimizer;
    EventSender& send;
    EpochLength epoch;  // for snapshot_epoch
    // The command that resumes from a state file, for messages; may be empty.
    std::function<std::string(const std::string& state)> resume_command;
    // Called before the weights are copied: the losses before them are read and judged.
    std::function<void(int64_t iteration)> read_losses;
    // Adds the run's own numbers to a state.
    std::function<void(SolverState* state)> store;
    // Called when a weight is nan or infinite; may throw.
    std::function<void()> not_finite;
  };
  explicit Snapshots(Run run);

  // --- when ---
  // The first iteration of the run begins; later calls do nothing.
  void start_clock();
  // Whether `snapshot` or snapshot_epoch ask for one after so many updates.
  bool regular_after(int64_t updates) const;
  // The same, or by snapshot_minutes.
  bool due(int64_t iteration) const;
  // max_minutes are over; says so.
  bool time_is_up(int64_t iteration);

  // --- writing; all ranks call these ---
  // Returns when the files are there. Error when they could not be written.
  void write(int64_t iteration);
  // Returns when the weights are copied. What goes wrong is an event.
  void begin_or_log(int64_t iteration);
  // Writes the weights of a test that was the best so far; in the test, so that test_ema's average
  // is written. A disk that is full ends no training.
  void keep_best(int64_t iteration, const WatchedOutput& watched);
  // Waits for what is being written.
  void finish();
  // Reports what has been written, without waiting.
  void poll();

  // --- what there is ---
  // The run goes on from a state file.
  void resumed_from(const SolverState& state, const std::string& path);
  // It goes on from its start instead.
  void forget_last() { last_state_.clear(); }
  const std::string& last_state() const { return last_state_; }  // "": none
  // Iteration of the last snapshot that this run wrote; -1: none.
  int64_t last_written() const { return written_iteration_; }
  // Whether the last one that was tried is missing; nobody wants it any more after forgive().
  bool failed() const { return failed_; }
  void forgive() { failed_ = false; }
  // A sentence: which snapshot to resume from, and how.
  std::string resume_hint() const;

 private:
  using Clock = std::chrono::steady_clock;

  void begin(int64_t iteration);
  SnapshotJob job(int64_t iteration);
  void copy(const TrainingCopy::Parts& parts);
  void check_room(uint64_t bytes);
  void report(const WrittenSnapshot& written);
  void remove_old();

  Run run_;
  SnapshotWriter writer_;
  std::string last_state_;  // the newest one on disk, and its iteration
  int64_t last_state_iteration_ = 0;
  bool failed_ = false;
  int64_t written_iteration_ = -1;
  std::optional<Clock::time_point> began_at_;  // the run
  Clock::time_point tried_at_;                 // the last one
  std::vector<std::pair<int64_t, SnapshotFiles>> kept_;
};

}  // namespace crema
