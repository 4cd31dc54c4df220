// CopyEngines: sums over the GPUs of one machine with copy engines, which leave the multiprocessors
// to kernels that run meanwhile. NCCL's kernels are faster if nothing else runs, but while they
// occupy multiprocessors, a kernel of one block per multiprocessor needs two waves.
//
// Each rank sums its part of the values: it copies the others' values of that part into a stage and
// adds them; then all copy the finished parts from each other. The ranks meet before each of the
// two rounds of copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "comm/gpu_barrier.h"
#include "device/communicator.h"
#include "device/context.h"
#include "device/memory.h"

namespace crema {

class CopyEngines {
 public:
  CopyEngines(Context& context, int rank, int ranks, Gather gather);
  ~CopyEngines();
  CopyEngines(const CopyEngines&) = delete;
  CopyEngines& operator=(const CopyEngines&) = delete;

  // Opens each rank's `memory`, a whole allocation of the same size, to the others; sums have at
  // most `most` bytes. All ranks call it. Returns whether all can: not if two are on different
  // machines or are not linked by NVLink, or if CUDA refuses or NCCL_P2P_DISABLE is set.
  bool expose(void* memory, size_t bytes, size_t most);

  // Whether sum() takes these values: at least kLeastBytes in exposed memory, aligned to 64 bytes.
  bool take(const void* values, int64_t count, Element element) const;
  // Queues the sum on the context's stream. The values may be written again after finish(), or once a
  // later sum of NCCL is done: no other rank reads them any more.
  void sum(void* values, int64_t count, Element element);
  void finish();
  // From any thread: from now on no call waits for the other ranks.
  void abort() { barrier_.release(); }

  // With less, to meet costs more than the processors that NCCL would take (measured with 4 H100s).
  static constexpr int64_t kLeastBytes = int64_t{8} << 20;

 private:
  struct Region {
    char* memory;
    size_t bytes;
    std::vector<char*> of_ranks;  // its address in this process
    std::vector<void*> opened;    // those that must be closed
  };

  const Region* region_of(const void* values, size_t bytes) const;
  bool reaches(std::string_view host, std::string_view bus_id) const;
  bool open(Region& region, const std::vector<std::string>& told) const;
  void close(const Region& region) const;
  int64_t part_of(int64_t count) const;

  Context& context_;
  int rank_, ranks_;
  Gather gather_;
  GpuBarrier barrier_;
  bool tried_ = false, met_ = false;  // to open the barrier
  std::vector<Region> regions_;
  std::unique_ptr<Buffer> stage_;
};

}  // namespace crema
