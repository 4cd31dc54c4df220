// GpuBarrier: a barrier of the GPUs of one machine without a kernel, so that a waiting GPU keeps
// computing. Each rank has flags in host memory that all ranks share; memory operations in the
// GPU's stream set the others' flags and wait for its own. CUDA graphs can record that.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "device/context.h"

namespace crema {

// Gives each rank the texts of all, by rank.
using Gather = std::function<std::vector<std::string>(const std::string& text)>;

class GpuBarrier {
 public:
  GpuBarrier(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
  ~GpuBarrier();
  GpuBarrier(const GpuBarrier&) = delete;
  GpuBarrier& operator=(const GpuBarrier&) = delete;

  // All ranks call it, on one machine. Returns whether this one can.
  bool open(const Gather& gather);
  // Queues a barrier on the context's stream: no rank passes before all have reached it. Rounds 0
  // and 1 alternate, also if a CUDA graph is launched again: a flag is reset before others may set
  // it again.
  void queue(Context& context, int round);
  // From any thread: from now on this rank passes without the others.
  void release();

 private:
  uint32_t* flag(int round, int of_rank, int from_rank) const;
  void unmap();

  int rank_, ranks_;
  uint32_t* flags_ = nullptr;  // in shared memory
  size_t bytes_ = 0;
  uint64_t on_gpu_ = 0;  // their address there; 0: not open
  std::atomic<bool> released_ = false;
  std::jthread releasing_;  // sets the flags again, whatever resets them
};

}  // namespace crema
