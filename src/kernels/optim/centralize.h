// Gradient centralization (Yong et al., 2020): subtracts its mean from the gradient of each
// output's weights, a slice along the first axis of a blob.
#pragma once

#include <vector>

#include "kernels/optim/update_table.h"

namespace crema {

class Centralizer {
 public:
  // For the segments with lr_mult, at least two axes, and more than one weight per output. dtype:
  // of the gradients, float or double.
  Centralizer(Context& context, const std::vector<Segment>& segments, DType dtype);

  // Changes the gradients in their arena. The sums are the same on every run.
  void run(Context& context, const Tensor& diff) const;

  // The gradients of an output's weights, contiguous in memory.
  struct Row {
    int64_t begin, count;
  };

 private:
  struct Rows {
    Tensor list;  // on the device
    int64_t count = 0;
  };
  static Rows rows_on_device(Context& context, const std::vector<Row>& rows);
  static void centralize(Context& context, const Rows& rows, const Tensor& values);

  Rows rows_;  // in the arena
  // Blobs whose outputs are not contiguous or have padding: they are reordered to row-major and
  // back.
  struct Reordered {
    Segment segment;
    Rows rows;  // in plain_
  };
  std::vector<Reordered> reordered_;
  Tensor plain_;
};

}  // namespace crema
