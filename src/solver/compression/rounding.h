// Rounding: what `quantize` in the solver's file does to the nets of a run.
#pragma once

#include <cstdint>

#include "net/net.h"
#include "net/prototxt/prototxt.h"
#include "solver/fields/layer_patterns.h"

namespace crema {

class Rounding {
 public:
  // check_compression() has passed.
  explicit Rounding(const SolverFile& file) : file_(file), layers_(file, "quantize") {}

  // Makes the text that of the layers of options.state, with FakeQuantize layers. options.where then gives
  // their positions.
  void add_to(NetFile* net, NetOptions* options) const;
  // Error if a pattern names no layer of the net with such layers.
  void check(const Net& net) const;
  // Whether the passes of an iteration round.
  bool is_on(int64_t iteration) const { return iteration >= start(); }
  int64_t start() const { return file_.solver.quantize().start(); }

 private:
  const SolverFile& file_;
  ChosenLayers layers_;
};

}  // namespace crema
