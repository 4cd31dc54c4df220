// What a snapshot stores, copied into host memory between two iterations: a file can be written from
// it while the training goes on.
#pragma once

#include <climits>
#include <memory>
#include <vector>

#include "net/weights/weights.h"
#include "net/weights/wire_writer.h"
#include "proto/solver.pb.h"

namespace crema {

class Optimizer;
struct SolverFile;

// The bytes of an arena.
class ArenaCopy {
 public:
  // Error when memory is short. The memory stays for the next copy: taking it from the system takes
  // several times as long as the copy.
  void take(Context& context, const Tensor& arena);

  // False when one of its numbers is nan or infinite.
  bool finite() const { return finite_; }
  // This copy's part of a parameter that begins at this element of the arena. Valid until the next
  // take().
  Tensor part(const Tensor& parameter, int64_t offset) const;

 private:
  std::unique_ptr<char[]> data_;
  size_t bytes_ = 0;
  DType dtype_ = DType::f32;
  bool finite_ = true;
};

class TrainingCopy {
 public:
  struct Parts {
    bool gradients = false;  // with the weights
    bool average = false;    // of the weights, if one is kept
    bool state = false;      // of the optimizer
  };
  // What the others give is of the last one.
  void take(Net& net, const Optimizer& optimizer, const Parts& parts);
  // On ranks that write nothing, while another one calls take(): gives it what it lacks, where the
  // ranks divide the optimizer's state.
  static void help_to_take(const Optimizer& optimizer, const Parts& parts);

  // False when a weight is nan or infinite.
  bool finite() const { return data_.finite(); }
  const WeightsContent& weights() const { return weights_; }
  // Without layers where none is kept.
  const WeightsContent& average() const { return average_; }
  // `numbers` and the optimizer's state, as Optimizer::store() has it. `host`: a context of the CPU.
  WireMessage binary_state(SolverState numbers) const;
  SolverState state(Context& host, SolverState numbers) const;

 private:
  void take_kept(Context& context, const Optimizer& optimizer, const Parts& parts);
  void take_average(Net& net, const Optimizer& optimizer);
  std::vector<Tensor> parts_of(const ArenaCopy& arena) const;

  ArenaCopy data_, diff_, average_arena_, slow_;
  std::vector<ArenaCopy> history_;
  std::vector<float> correlations_;
  std::vector<Tensor> parameters_;  // for their shapes and formats
  std::vector<int64_t> offsets_;
  // Parts of the state: one for each parameter and history, and one for each parameter.
  std::vector<Tensor> history_parts_, average_parts_, slow_parts_;
  WeightsContent weights_, average_;
};

// Bytes of the values that the files of a snapshot with these parts hold.
uint64_t snapshot_bytes(const Net& net, const Optimizer& optimizer,
                        const TrainingCopy::Parts& parts, bool hdf5);

// Error, with the position in the file, when one of a snapshot's files would be larger than its
// format allows: that is known before the training.
void check_snapshot_size(const SolverFile& file, const Net& net, const Optimizer& optimizer,
                         uint64_t limit = INT_MAX);
// The same for weights (with gradients, if snapshots have them) and an optimizer's state of these sizes.
void check_snapshot_size(const SolverFile& file, uint64_t weights, uint64_t state,
                         uint64_t limit = INT_MAX);

}  // namespace crema
