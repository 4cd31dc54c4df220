// Gradient centralization (Yong et al., 2020): from the gradient of each output's weights, those of
// one place on the first axis of a blob, their mean is taken.
#pragma once

#include <vector>

#include "kernels/optim/update_table.h"

namespace crema {

class Centralizer {
 public:
  // Of the segments with lr_mult and two axes and more, of which an output has more than one
  // weight. dtype: of the gradients, float or double.
  Centralizer(Context& context, const std::vector<Segment>& segments, DType dtype);

  // Changes the gradients in their arena. Sums are the same on every run.
  void run(Context& context, const Tensor& diff) const;

  // The gradients of an output's weights, one after another.
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
  // Blobs whose outputs do not lie one after another, or with padding between: they are brought
  // into plain order and back.
  struct Reordered {
    Segment segment;
    Rows rows;  // in plain_
  };
  std::vector<Reordered> reordered_;
  Tensor plain_;
};

}  // namespace crema
