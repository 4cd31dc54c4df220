// Communicator: the processes, called ranks, that train one net together. comm/ implements it with
// NCCL and MPI; a context without one trains alone. All ranks make the same calls in the same
// order. Every call throws a RankLost once a rank is lost or another rank has failed; none waits
// longer than the ranks' timeout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/exceptions.h"

namespace crema {

class Context;

// Another rank has ended, hangs or has failed: what() names it, its host and its last iteration.
class RankLost : public Error {
 public:
  RankLost(const std::string& what, bool told) : Error(what), told_(told) {}
  // Whether a rank has already told the user, so that this one need not.
  bool told() const { return told_; }

 private:
  bool told_;
};

// The type of the summed values. MPI sums f32 and f64.
enum class Element { f32, f64, f16, bf16 };

// Samples [first, first + count) of a batch of `all` samples, which all ranks have together.
struct BatchShare {
  int64_t first = 0, count = 0, all = 0;
};

class Communicator {
 public:
  Communicator(int rank, int ranks) : rank(rank), ranks(ranks) {}
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const int rank, ranks;
  // Whether a net's batch_size is that of all ranks together (-batch_mode total); otherwise each
  // rank has a batch of that size.
  bool divides_batches = false;
  // This rank's part of a batch of `batch_size`. Error when there are more ranks than samples.
  BatchShare share_of(int64_t batch_size) const;

  // --- between hosts, a few bytes ---
  // The texts of all ranks, by rank.
  virtual std::vector<std::string> gather(std::string_view text) = 0;
  // Sums over the ranks, added in their order: the same bits on each.
  void sum(std::span<double> values);
  // Tells the other ranks how far this one is; RankLost when one of them is lost.
  virtual void at_iteration(int64_t iteration) = 0;
  // Until the matching end_pause() this rank may take longer than the timeout, for a slow disk for
  // example.
  virtual void begin_pause() = 0;
  virtual void end_pause() = 0;

  // --- sums over the ranks of values in the context's memory, in place, the same bits on each ---
  // Announces that begin_sum() will often sum at most this many bytes in this memory, a whole
  // allocation of the same size on all ranks, which must outlive all sums: GPUs of one machine may
  // then read each other's.
  virtual void expose(Context& /*context*/, void* /*memory*/, size_t /*bytes*/, size_t /*most*/) {}
  // In the order of the context's queue. Two ranks may be at different places of two queues: sums
  // on the communication stream are independent of those on the main stream.
  virtual void sum(Context& context, void* values, int64_t count, Element element) = 0;
  // Runs concurrently with the caller's next work, until wait(). On a CPU a thread does it; on a
  // GPU it is queued on the communication stream, after everything queued on all streams so far.
  virtual void begin_sum(Context& context, void* values, int64_t count, Element element) = 0;
  virtual void wait(Context& context) = 0;
  // From now on: this rank's part [part * rank, part * (rank + 1)) of the sums of all values, whose
  // count is ranks * part; the rest of `values` is undefined.
  virtual void sum_part(Context& context, void* values, int64_t part, Element element) = 0;
  // Each rank gives its part and gets those of the others.
  virtual void share_parts(Context& context, void* values, int64_t part, Element element) = 0;
  // Whether a CUDA graph can record these calls.
  virtual bool recordable() const = 0;

  // "NCCL 2.28" or "Open MPI 4.1", for the log.
  virtual std::string engine() const = 0;
};

}  // namespace crema
