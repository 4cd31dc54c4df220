// Optimizer: a solver's update rule with its state, which has the layout of one net's parameters,
// or of this rank's part of them (solver/ranks/shard.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/optim/centralize.h"
#include "kernels/optim/update.h"
#include "net/net.h"
#include "net/weights/weights.h"
#include "proto/solver.pb.h"
#include "solver/ranks/shard.h"

namespace crema {

class Optimizer {
 public:
  // Error when the solver asks for something that its rule does not support. `net` must outlive
  // this. An average of the weights (ema_decay) and slow weights (lookahead) start from the current
  // weights. shard: where the net's context has several ranks, they divide the state; the solver's
  // file must have passed check_sharding(). All ranks then make the calls marked (*).
  Optimizer(const SolverParameter& solver, Net& net, bool shard = false);

  bool sharded() const { return shard_.has_value(); }
  // Where sharded, before each update instead of a sum over the ranks of all gradients (*).
  void reduce_gradients();
  // Bytes of histories, average and slow weights that this rank keeps; and all ranks together.
  size_t kept_bytes() const;
  size_t whole_bytes() const;

  struct Clipped {
    double norm = 0, limit = 0, scale = 0;
  };
  // One update from the net's gradients, which are the sum over iter_size batches. Returns how they
  // were clipped, if they were. (*)
  std::optional<Clipped> update(double rate, int64_t iteration);

  // On a GPU: queues an update with the rates and factors in `live`, and advances those; or one
  // part of it, early before late. (*)
  void queue_update(const LiveUpdate& live, Update::Part part = Update::Part::all);
  // Call before queue_update(), for each plan of the net. Whether there is an early part,
  // Net::early_parameters().
  bool prepare_queued();
  // Whether a queued update leaves zeros in the gradients that the net wants cleared.
  bool clears_gradients() const { return clears_gradients_; }
  // With `prune` in the solver: where the mask of a parameter is 0, its value is 0 now and after each update. masks:
  // of each parameter in Caffe's order; empty: all of its values stay. Replaces earlier masks. All ranks
  // give the same ones.
  void keep_zeros(const std::vector<std::vector<float>>& masks);
  // The limits set by clip_gradients and on_divergence.
  UpdateLimits limits() const;
  // The hyperparameters of an iteration whose learning rate is `rate`.
  Hyperparameters hyperparameters(int64_t iteration, double rate) const;

  // A learned weight is NaN or infinite, or may be: above 1.8e19, squares are not exact. (*)
  bool weights_may_not_be_finite() const;

  bool averages() const { return static_cast<bool>(arenas_.average); }
  bool keeps_slow() const { return static_cast<bool>(arenas_.slow); }
  // Restarts from the current weights what `field` keeps in addition to them: the average of
  // ema_decay, the slow weights of lookahead.
  void restart(const std::string& field);
  // Swaps the weights and their average. (*)
  void exchange_average();
  // Whether they are swapped now.
  bool exchanged() const { return exchanged_; }
  // What a snapshot copies: calls `copy` with each history, then the average and the slow weights
  // where they are kept and asked for, as arenas with the layout of the net's parameters (*). They
  // are valid during the call; where sharded, the gradients are gone afterwards.
  enum class Kept { history, average, slow };
  using CopyKept = std::function<void(Kept what, size_t index, const Tensor& arena)>;
  void visit_kept(const std::vector<Kept>& wanted, const CopyKept& copy) const;
  size_t histories() const { return arenas_.history.size(); }
  // Whether updates change a parameter.
  bool updates(size_t parameter) const;
  std::vector<float> correlations() const;  // the memory of larc_turbo

  // The state as Caffe stores it: one blob per parameter, and for rules with two histories all
  // of them a second time; in addition the average, slow weights and the memory of larc_turbo. (*)
  void store(SolverState* state) const;
  // Error when number or shapes do not match the net; then nothing has changed. Returns the fields
  // for which something is kept that the state lacks: restart() them.
  std::vector<std::string> restore(const SolverState& state, const std::string& path);

 private:
  std::vector<Segment> segments() const;
  void prune();
  size_t bytes_like(const Tensor& arena) const;
  UpdateSettings common_settings() const;
  std::optional<Clipped> clip(float* scale);
  Tensor part_of(const Tensor& arena, size_t parameter) const;
  std::vector<Tensor> parts_of(const Tensor& arena) const;
  Tensor own(const Tensor& arena) const { return shard_ ? shard_->own(arena) : arena; }
  void read_blobs(const google::protobuf::RepeatedPtrField<BlobProto>& blobs, size_t first,
                  const Tensor& kept) const;
  bool restore_blobs(const google::protobuf::RepeatedPtrField<BlobProto>& blobs,
                     const Tensor& kept) const;

  const SolverParameter& solver_;
  Net& net_;
  const RuleTraits& rule_;
  std::optional<Shard> shard_;
  std::optional<Update> update_;
  std::optional<Centralizer> centralizer_;
  UpdateArenas arenas_;  // of the shard, if there is one
  Tensor mask_;          // u8: 0 where a parameter is pruned; empty without `prune`
  bool clears_gradients_ = false, exchanged_ = false;
};

// Reads the values of a blob with as many as the tensor.
void read_blob(Context& context, const BlobProto& blob, const Tensor& to);
// Appends one blob for each tensor, as Caffe stores them.
void store_blobs(Context& context, const std::vector<Tensor>& tensors,
                 google::protobuf::RepeatedPtrField<BlobProto>* blobs);

// How many arenas as large as the parameters' training keeps: histories, an average, slow weights. The mask of
// `prune` counts as one, though it takes a byte per element.
int kept_arenas(const SolverParameter& solver);

// Replaces the parameters by their average for the lifetime of this object; no-op when there is
// none.
class AveragedWeights {
 public:
  explicit AveragedWeights(Optimizer& optimizer) : optimizer_(optimizer) { change(); }
  ~AveragedWeights() { change(); }
  AveragedWeights(const AveragedWeights&) = delete;

 private:
  void change() {
    if (optimizer_.averages()) optimizer_.exchange_average();
  }
  Optimizer& optimizer_;
};

}  // namespace crema
