// Softmax cross-entropy with integer labels, or with shares of the classes
// (kernels/softmax/softmax_shares_loss.h), over (outer, classes, inner) as in
// kernels/softmax/softmax.h:
//   loss = sum over positions of v[position] * w[label] * min(log(sum(exp(x))) - x[label], 87.3)
//          / normalizer
//   dx   = d_loss * v[position] * w[label] * (softmax(x) - target) / normalizer
// target is 1 at the label; with label smoothing e it is 1 - e at the label, plus e / classes for
// every class. It is computed from differences to the largest x, so that it is accurate for any x;
// only the reported loss of a position has Caffe's limit.
#pragma once

#include <optional>

#include "kernels/softmax/softmax.h"

namespace crema {

struct SoftmaxLossCase {
  SoftmaxView view;
  int64_t images = 1;               // for messages: each image has positions / images positions
  std::optional<int> ignore_label;  // positions with this label do not count
  // The normalizer is the number of positions that are not ignored (with position_weights the sum of v
  // * w), at least 1; otherwise this value.
  bool divide_by_valid = true;
  double normalizer = 1;
  float smoothing = 0;
  bool shares = false;  // the labels are a share of each class, in the order of x
  uint64_t pass = 0;    // for messages: of the forward pass, or *live_pass where that is not null
  const uint64_t* live_pass = nullptr;
  Tensor class_weights;     // w: one per class, in the dtype of the labels; empty: 1
  Tensor position_weights;  // v: one per position, likewise

  int64_t positions_each() const { return view.positions() / (images > 0 ? images : 1); }
};

// What forward leaves for backward.
struct SoftmaxLossSaved {
  // (3, positions): largest x, 1 / sum(exp(x - largest)), undivided loss; a fourth row for shares.
  Tensor positions;
  Tensor normalizer;  // two values: the normalizer, and what is counted with divide_by_valid
  Tensor note;        // of LabelNote
};

// labels: one per position, or shares, in the dtype of x. Writes loss (a scalar), saved, and
// probability, like x, unless empty. A label that is no class is an Error on the CPU; a GPU does
// not stop for it: the loss is NaN, and the note (kernels/labels/labels.h) says why.
void softmax_loss_forward(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                          const Tensor& labels, const Tensor& loss, const SoftmaxLossSaved& saved,
                          const Tensor& probability);
void softmax_loss_backward(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                           const Tensor& labels, const SoftmaxLossSaved& saved,
                           const Tensor& d_loss, const Tensor& dx);

}  // namespace crema
