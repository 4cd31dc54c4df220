// A fully connected layer with few outputs that feeds only a SoftmaxWithLoss, the last step of a
// classifier: one kernel each for the loss, for the gradients of x and the scores, and for those of
// the parameters, where launching the kernels that this replaces costs more than their work. Each
// kernel but the last recomputes the scores; only the last depends on another.
//   s = x w' + b, loss and ds as in kernels/softmax/softmax_loss.h,
//   dx = ds w, dw = ds' x, db = sum ds
// Shapes: x (rows, inputs), w (outputs, inputs), b (outputs) or empty, ds (rows, outputs) in
// float32; x, w, b and dx are float32 or 16 bits, all else is float32.
#pragma once

#include "kernels/core/kernel_registry.h"
#include "kernels/softmax/softmax_loss.h"

namespace crema {

struct DenseSoftmaxLoss {
  int64_t rows = 0, inputs = 0, outputs = 0;
  SoftmaxLossCase loss;  // without weights of classes and positions
  // dx is passed back through the ReLU that produced x and multiplied by this; 0: no ReLU.
  float relu_factor = 0;
  static constexpr int kMaxOutputs = 60;

  // True for the cases it is meant for: on a GPU, and small. Others are not supported.
  bool is_profitable(const Context& context) const;
};

// labels: as in softmax_loss.h, with a note of an invalid one.
void dense_softmax_loss(Context& context, const DenseSoftmaxLoss& c, const Tensor& x,
                        const Tensor& w, const Tensor& b, const Tensor& labels, const Tensor& loss,
                        const Tensor& note);
// dx may be empty.
void dense_softmax_loss_gradient(Context& context, const DenseSoftmaxLoss& c, const Tensor& x,
                                 const Tensor& w, const Tensor& b, const Tensor& labels,
                                 const Tensor& d_loss, const Tensor& ds, const Tensor& dx);
// dw and db may be empty. accumulate: add instead of overwrite.
void dense_softmax_loss_parameters(Context& context, const DenseSoftmaxLoss& c, const Tensor& x,
                                   const Tensor& ds, const Tensor& dw, const Tensor& db,
                                   bool accumulate_w, bool accumulate_b);

// Their implementations.
extern KernelsOf<decltype(dense_softmax_loss)> dense_softmax_loss_kernels;
extern KernelsOf<decltype(dense_softmax_loss_gradient)> dense_softmax_loss_gradient_kernels;
extern KernelsOf<decltype(dense_softmax_loss_parameters)> dense_softmax_loss_parameters_kernels;

}  // namespace crema
