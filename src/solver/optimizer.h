// Optimizer: the update rule of a solver with its state, laid out as the parameters of one net are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/optim/centralize.h"
#include "kernels/optim/update.h"
#include "net/net.h"
#include "proto/solver.pb.h"

namespace crema {

class Optimizer {
 public:
  // Error when the solver asks for something its rule cannot do. `net` must outlive this. An
  // average of the weights (ema_decay) and slow weights (lookahead) start from those of now.
  Optimizer(const SolverParameter& solver, Net& net);

  struct Clipped {
    double norm = 0, limit = 0, scale = 0;
  };
  // One update from the net's gradients, which are the sum over iter_size batches. Says when they
  // were clipped.
  std::optional<Clipped> update(double rate, int64_t iteration);

  // On a GPU: queues an update with the rates and factors of `live`, and moves those on; or one of
  // its parts, early before late.
  void queue_update(const LiveUpdate& live, Update::Part part = Update::Part::all);
  // Before it, for each plan of the net. Whether there is an early part, Net::early_parameters().
  bool prepare_queued();
  // Whether a queued update leaves zeros in the gradients that the net wants cleared.
  bool clears() const { return clears_; }
  // What clip_gradients asks for.
  UpdateLimits limits() const;
  // The numbers of an iteration whose learning rate is `rate`.
  UpdateRates rates_at(int64_t iteration, double rate) const;

  bool averages() const { return static_cast<bool>(arenas_.average); }
  // What `field` keeps beside the weights starts anew from those of now: the average of ema_decay,
  // the slow weights of lookahead.
  void restart(const std::string& field);
  // Weights and their average change places.
  void exchange_average();

  // The state as Caffe stores it: a blob for each parameter, and for rules with two histories all
  // of them once more; beside it the average, slow weights and what larc_turbo remembers.
  void store(SolverState* state) const;
  // Error when number or shapes do not agree with the net; then nothing has changed. Gives the
  // fields for which something is kept that the state has not: restart() them.
  std::vector<std::string> restore(const SolverState& state, const std::string& path);

 private:
  UpdateStep common_step() const;
  std::optional<Clipped> clip(float* scale);
  Tensor part_of(const Tensor& arena, size_t parameter) const;
  void store(const Tensor& arena, google::protobuf::RepeatedPtrField<BlobProto>* blobs) const;
  bool restore_blobs(const google::protobuf::RepeatedPtrField<BlobProto>& blobs,
                     const Tensor& arena) const;

  const SolverParameter& solver_;
  Net& net_;
  UpdateRule rule_;
  std::optional<Update> update_;
  std::optional<Centralizer> centralizer_;
  UpdateArenas arenas_;
  bool clears_ = false;
};

// Arenas as large as the parameters' that training keeps: histories, and an average.
int kept_arenas(const SolverParameter& solver);

// Parameters whose average stands in for them, for as long as this lives; nothing when there is
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

// Names and shapes of a net's learned blobs in short.
std::string fingerprint_of(const Graph& graph);
// A hash of their values.
uint64_t weights_checksum(Net& net);

}  // namespace crema
