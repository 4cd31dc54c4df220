// The cross-entropy of softmax with integer labels, over (outer, classes, inner) as in
// kernels/softmax/softmax.h:
//   loss = sum over places of v[place] * w[label] * min(log(sum(exp(x))) - x[label], 87.3)
//          / normalizer
//   dx   = d_loss * v[place] * w[label] * (softmax(x) - target) / normalizer
// target is 1 at the label; with label smoothing e it is 1 - e there, and e / classes more
// everywhere. Computed from differences to the largest x, so that it is exact for any x; only the
// reported loss of a place has Caffe's limit.
#pragma once

#include <optional>

#include "kernels/softmax/softmax.h"

namespace crema {

struct SoftmaxLossCase {
  SoftmaxView view;
  int64_t images = 1;               // for messages: places / images belong to one image
  std::optional<int> ignore_label;  // places with this label cost nothing
  // The normalizer is the number of places that are not ignored (with place_weights the sum of v *
  // w), at least 1; or else this one.
  bool divide_by_valid = true;
  double normalizer = 1;
  float smoothing = 0;
  uint64_t pass = 0;  // for messages: of the forward pass, or *live_pass where that is not null
  const uint64_t* live_pass = nullptr;
  Tensor class_weights;  // w: one a class, in the dtype of the labels; empty: 1
  Tensor place_weights;  // v: one a place, likewise

  int64_t places_each() const { return view.places() / (images > 0 ? images : 1); }
};

// What forward leaves for backward.
struct SoftmaxLossSaved {
  Tensor places;      // (3, places): largest x, 1 / sum(exp(x - largest)), loss before the division
  Tensor normalizer;  // one value
  Tensor note;        // of LabelNote
};

// labels: one for each place, in the dtype of x. Written: loss (a scalar), saved, and probability,
// like x, unless empty. A label that is no class is an Error on the CPU; a GPU does not stop for
// it: the loss is NaN, and the note (kernels/core/labels.h) says why.
void softmax_loss_forward(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                          const Tensor& labels, const Tensor& loss, const SoftmaxLossSaved& saved,
                          const Tensor& probability);
void softmax_loss_backward(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                           const Tensor& labels, const SoftmaxLossSaved& saved,
                           const Tensor& d_loss, const Tensor& dx);

}  // namespace crema
