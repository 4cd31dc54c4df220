// Shard: this rank's part of a net's parameters where the optimizer's state is divided among the
// ranks (-shard; Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
// Models", 2020, stage 1). A rank keeps histories, average and slow weights of its part only, sums
// over the ranks the gradients of that part, updates it, and gets the others' new weights.
//
// Rank r of R owns the elements [r * part, (r + 1) * part) of an arena of n elements. part is the
// largest multiple of 4 (16 bytes) up to n / R. The last rank also owns the rest, fewer than 5 * R
// elements, so the arenas need no padding. Usually there is no rest, as arenas are multiples of 16.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "device/communicator.h"
#include "kernels/optim/update_table.h"
#include "net/net.h"

namespace crema {

struct SolverFile;

// Error, with the position, where a field asks for what needs whole parameters.
void check_sharding(const SolverFile& file);

class Shard {
 public:
  // The net's context has a world. Error when there are too few parameters for its ranks.
  explicit Shard(Net& net);

  // Its elements of the net's arenas are [first, first + count).
  int64_t first() const { return first_; }
  int64_t count() const { return count_; }
  // That part of an arena with the layout of the net's parameters.
  Tensor own(const Tensor& arena) const;
  // The segments within it, counted from its first element.
  std::vector<Segment> within(const std::vector<Segment>& segments) const;

  // --- calls that all ranks make ---
  // Sums the gradients of this part over the ranks; what the rest of the arena holds is undefined.
  void sum_gradients() const;
  // Fills the rest of an arena from the ranks that have it.
  void share(const Tensor& arena) const;
  // The same for the weights after an update. Statistics that layers measure stay this rank's. The
  // gradients become zero.
  void share_weights() const;
  // Adds up numbers of the ranks, on the host.
  void sum(std::span<double> values) const;
  // The same of one number in the context's memory, in the order of its queue.
  void sum(double* value) const;
  // Calls `use` with an arena of the whole net made of all ranks' `kept`, with as many elements as
  // this part. It is stored in place of the gradients, which are zero afterwards.
  void gather(const Tensor& kept, const std::function<void(const Tensor& arena)>& use) const;

  // The reverse, by this rank alone: `fill` writes the arena, of which `kept` gets this part.
  void scatter(const std::function<void(const Tensor& arena)>& fill, const Tensor& kept) const;

 private:
  Communicator& world() const;
  Tensor rest_of(const Tensor& arena) const;

  Net& net_;
  int64_t elements_ = 0, part_ = 0, first_ = 0, count_ = 0;
  ChunkTable measured_;  // parameters that do not learn
};

}  // namespace crema
