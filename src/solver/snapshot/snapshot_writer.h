// SnapshotWriter: writes the files of a snapshot in a thread of its own, while the training goes on.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "proto/solver.pb.h"
#include "solver/snapshot/snapshot.h"
#include "solver/snapshot/training_copy.h"

namespace crema {

// What is to be written.
struct SnapshotJob {
  int64_t iteration = 0;
  SnapshotFiles files;  // "": not wanted
  bool hdf5 = false;
  SolverState state;    // its numbers; what is in the copy is added
  std::string of_best;  // what to say of the weights of the best test; "": a snapshot
};

// What has become of it.
struct WrittenSnapshot {
  int64_t iteration = 0;
  SnapshotFiles files = {};
  std::string hash = {}, hash_of_average = {};  // of the weights; of their average, if one is kept
  std::string of_best = {};
  std::string error = {};  // "": the files are in place
};

class SnapshotWriter {
 public:
  // writes false: there is nothing to write, as another rank does it, and that is done at once.
  explicit SnapshotWriter(bool writes = true) : writes_(writes) {}
  ~SnapshotWriter();  // waits for the files
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // What the files are written from. To be changed only before start().
  TrainingCopy& copy() { return copy_; }
  // The one before must have been taken.
  void start(SnapshotJob job);
  // What was started last, once: where it is done, or after waiting for it.
  std::optional<WrittenSnapshot> take_if_done();
  std::optional<WrittenSnapshot> wait();

 private:
  const bool writes_;
  TrainingCopy copy_;
  std::thread thread_;
  bool started_ = false;  // and not taken yet
  std::atomic<bool> done_ = false;
  WrittenSnapshot written_;  // the thread's until it is done
};

}  // namespace crema
