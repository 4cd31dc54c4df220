// A fully connected layer with few outputs, of which nobody wants more than SoftmaxWithLoss: the
// last step of a classifier in one kernel each for its loss, for the gradients of x and the scores,
// and for those of the parameters, where starting the kernels that this replaces costs more than
// their work. Each computes the scores anew; none waits for another but the last.
//   s = x w' + b, loss and ds as kernels/softmax/softmax_loss.h has them,
//   dx = ds w, dw = ds' x, db = sum ds
// Shapes: x (rows, inputs), w (outputs, inputs), b (outputs) or empty, ds (rows, outputs) in
// float32; x, w, b and dx are float32 or 16 bits, all else is float32.
#pragma once

#include "kernels/softmax/softmax_loss.h"

namespace crema {

struct DenseSoftmaxLoss {
  int64_t rows = 0, inputs = 0, outputs = 0;
  SoftmaxLossCase loss;  // without weights of classes and places
  // dx goes through the ReLU that made x, and is multiplied by this; 0: it does not.
  float relu_factor = 0;
  static constexpr int kMostOutputs = 60;

  // Whether it is of those that this is for: on a GPU, and small.
  bool worth_it(const Context& context) const;
  // labels: as in softmax_loss.h, with the note of a bad one.
  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
               const Tensor& labels, const Tensor& loss, const Tensor& note) const;
  // dx may be empty.
  void backward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                const Tensor& labels, const Tensor& d_loss, const Tensor& ds,
                const Tensor& dx) const;
  // dw and db may be empty. accumulate: add instead of overwrite.
  void backward_parameters(Context& context, const Tensor& x, const Tensor& ds, const Tensor& dw,
                           const Tensor& db, bool accumulate_w, bool accumulate_b) const;
};

}  // namespace crema
