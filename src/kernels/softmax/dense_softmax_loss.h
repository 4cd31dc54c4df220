// A fully connected layer with few outputs that feeds only a SoftmaxWithLoss, the last step of a
// classifier: one kernel each for the loss, for the gradients of x and the scores, and for those of
// the parameters, where launching the kernels that this replaces costs more than their work. Each
// kernel but the last recomputes the scores; only the last depends on another.
//   s = x w' + b, loss and ds as in kernels/softmax/softmax_loss.h,
//   dx = ds w, dw = ds' x, db = sum ds
// Shapes: x (rows, inputs), w (outputs, inputs), b (outputs) or empty, ds (rows, outputs) in
// float32; x, w, b and dx are float32 or 16 bits, all else is float32.
#pragma once

#include "kernels/softmax/softmax_loss.h"

namespace crema {

struct DenseSoftmaxLoss {
  int64_t rows = 0, inputs = 0, outputs = 0;
  SoftmaxLossCase loss;  // without weights of classes and positions
  // dx is passed back through the ReLU that produced x and multiplied by this; 0: no ReLU.
  float relu_factor = 0;
  static constexpr int kMaxOutputs = 60;

  // True for the cases it is meant for: on a GPU, and small.
  bool is_profitable(const Context& context) const;
  // labels: as in softmax_loss.h, with a note of an invalid one.
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
