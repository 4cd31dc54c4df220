// Pruning: what `prune` in the solver's file does to the weights of the trained net.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/net.h"
#include "net/prototxt/prototxt.h"
#include "net/surgery/channel_groups.h"
#include "solver/fields/layer_patterns.h"

namespace crema {

class Optimizer;

class Pruning {
 public:
  // check_compression() has passed. Error, with the position, for patterns that name no layer, and if nothing is
  // left to prune. All arguments must outlive this.
  Pruning(const SolverFile& file, Net& net, Optimizer& optimizer);

  // Whether the weights change before an iteration.
  bool is_due(int64_t iteration) const;
  // Sets weights to 0 that are to be 0 in an iteration, and has the optimizer keep them so. Does nothing if that
  // has been done. Returns a line for the log, or "".
  std::string follow(int64_t iteration);
  // The weights are others now.
  void restart() { share_ = kUnknown; }

 private:
  // A parameter, row-major; empty if nothing of it is pruned.
  struct Values {
    Shape shape;
    std::vector<float> now, mask;
  };
  int64_t end() const;
  // The share that is 0 from the last step before an iteration on; kNone: none yet.
  double share_in(int64_t iteration) const;
  void read();
  void choose_weights(double share);
  void choose_pairs();
  void choose_channels(double share);
  std::vector<double> sizes_of(const ChannelGroup& group) const;
  void write();

  const SolverFile& file_;
  const PruneTraining& p_;
  Net& net_;
  Optimizer& optimizer_;
  ChosenLayers layers_;
  std::vector<int> weights_;  // parameters that lose single weights
  std::vector<ChannelGroup> channels_;
  std::vector<Values> values_;  // of each parameter of the net
  static constexpr double kNone = -1, kUnknown = -2;
  double share_ = kNone;  // that is 0 now
};

}  // namespace crema
