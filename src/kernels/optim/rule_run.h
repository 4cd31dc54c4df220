// RuleRun: one update, as the passes of a rule see it. For .cu files only.
#pragma once

#include "kernels/optim/update.h"
#include "kernels/optim/update_walk.h"

namespace crema {

template <typename T>
struct RuleRun {
  Context& context;
  RuleOperands<T> in;
  const ChunkTable& table;       // what this run updates: all segments, or a part of them
  const SegmentFactor* factors;  // for clipping by blob and rates from norms; null without them
  const LiveUpdate* live;
  bool last;  // this run advances the counters at its end
  WeightCopies<T> copies;
  T* clear_gradient;
  // For rules whose scope is not the element.
  const Hyperparameters& at;
  const UpdateFactors& norms;
  const MatrixParts& parts;
  const Tensor& second_history;

  // A pass over some chunks that leaves the weights as they are.
  template <typename Rule>
  void prepare(const ChunkTable& chunks, const Rule& rule) const {
    walk<T>(context, {chunks, factors, live, false}, rule);
  }
  // A pass that changes weights, with the factors of the blobs.
  template <typename Rule>
  void update(const ChunkTable& chunks, const SegmentFactor* with, bool advances,
              const Rule& rule) const {
    walk<T>(context, {chunks, with, live, advances}, rule, copies, clear_gradient);
  }
};

}  // namespace crema
