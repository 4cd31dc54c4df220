// MpiQueue: the sums of one process, made by one thread. That thread makes all MPI calls, so a
// caller that waits for a sum can give up, however long a call takes.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <thread>

#include "device/communicator.h"

namespace crema {

// All members are thread-safe. Within a lane all ranks begin the same work in the same order, and
// the lanes do not wait for each other.
class MpiQueue {
 public:
  enum Lane { kBeside, kInOrder, kLanes };

  // timeout: seconds that a wait lasts without any progress.
  explicit MpiQueue(double timeout);
  // Gives up unfinished work.
  ~MpiQueue();
  MpiQueue(const MpiQueue&) = delete;
  MpiQueue& operator=(const MpiQueue&) = delete;

  // Sums `count` values in place. Error for a type that MPI cannot add.
  void begin_sum(Lane lane, void* values, int64_t count, Element element);
  // Each rank gives its `part` values at part * rank and gets those of the others.
  void begin_share(Lane lane, void* values, int64_t part, Element element);
  // Waits until all work begun in this lane is done. Throws a RankLost after the timeout, after
  // abort() and if MPI fails; MPI is not called any more then.
  void wait(Lane lane);
  void abort();
  // Throws a RankLost where wait() would.
  void check() const;
  // Whether all work is done and MPI can still be called.
  bool idle() const;

 private:
  struct State;
  struct Piece;
  class Worker;
  // The thread's too, as it cannot be joined while a call of MPI does not return.
  std::shared_ptr<State> state_;
  std::thread thread_;
};

// Throws a RankLost with MPI's words: what fails is nearly always a connection to another rank.
void check_mpi(int status, const char* what);

}  // namespace crema
