// DividedBatch: layers that create tops for the samples of other sources, whose batch several ranks
// may divide.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/shape.h"

namespace crema {

class DividedBatch {
 public:
  virtual ~DividedBatch() = default;
  // Before setup: the samples in the net's batch. An axis of another extent has no samples. 0: the
  // net's sources give each rank its own batch.
  void set_divided_batch(int64_t samples) { batch_ = samples; }
  // If ranks share batches: changes this rank's tops to those of twice as many samples.
  virtual void double_samples(std::vector<Shape>& tops) const = 0;

 protected:
  // Whether an axis of this extent has samples.
  bool has_samples(int64_t extent) const { return batch_ < 0 || extent == batch_; }

 private:
  int64_t batch_ = -1;  // unknown: every axis may have samples
};

}  // namespace crema
