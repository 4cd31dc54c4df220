// The interface of convolutions and fully connected layers: y = relu(w * x + b), where * is the
// convolution or matrix product, and its gradients.
#pragma once

#include <cstddef>
#include <memory>

#include "device/aligned.h"
#include "kernels/core/dropout.h"
#include "tensor/tensor.h"

namespace crema {

// The gradient of y. It has already passed through the case's ReLU, unless y is given: then the
// callee applies the ReLU's gradient.
struct OutputGradient {
  const Tensor& dy;
  const Tensor* y = nullptr;
  float factor = 1;  // dy is multiplied by it; other than 1 only with y and takes_relu()
  OutputGradient(const Tensor& gradient) : dy(gradient) {}  // NOLINT(google-explicit-constructor)
  OutputGradient(const Tensor& gradient, const Tensor& output) : dy(gradient), y(&output) {}
};

// Made for one case. w and dw are in weights_format(); the workspace has at least workspace()
// bytes.
class LinearKernel {
 public:
  virtual ~LinearKernel() = default;
  virtual Format weights_format() const { return Format::row_major(); }
  virtual size_t workspace() const { return 0; }
  // forward_with_sums() is supported, and measured to cost less than a separate pass over y.
  virtual bool gives_sums() const { return false; }
  // forward_with_sums() supports `affine`, and is measured to cost less than writing that x.
  virtual bool takes_affine() const { return false; }
  virtual bool gradient_takes_affine() const { return false; }  // likewise
  // The backward calls accept y of the case's ReLU, and backward_weights computes db.
  virtual bool takes_relu() const { return false; }
  // backward_weights and backward_both add to dw and db in varying order: faster with `accumulate`,
  // into cleared tensors.
  virtual bool adds_weights() const { return false; }
  // b is empty without bias.
  virtual void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                       const Tensor& y, const Tensor& workspace) = 0;
  // backward_weights() without bias for such an x; only if gradient_takes_affine().
  virtual void backward_weights_affine(Context&, const Tensor& x, const Tensor& affine,
                                       const Tensor& dy, const Tensor& dw, bool accumulate,
                                       const Tensor& workspace);
  // With a dropout of y, which has no spatial axes.
  virtual void forward_with_dropout(Context& context, const Tensor& x, const Tensor& w,
                                    const Tensor& b, const Tensor& y, const DropoutMask& mask,
                                    const Tensor& workspace) {
    forward(context, x, w, b, y, workspace);
    dropout(context, mask, y, y);
  }
  // Also sums each channel of y and of its squares: sums (2, channels), float32. The order of
  // additions may differ from call to call. affine (2, channels of x), float16: the convolution's
  // input is relu(x * affine[0] + affine[1]); empty: x itself.
  virtual void forward_with_sums(Context&, const Tensor& x, const Tensor& affine, const Tensor& w,
                                 const Tensor& y, const Tensor& sums, const Tensor& workspace);
  virtual void backward_data(Context& context, const OutputGradient& g, const Tensor& w,
                             const Tensor& dx, const Tensor& workspace) = 0;
  // db may be empty. accumulate: add instead of overwrite.
  virtual void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                                const Tensor& dw, const Tensor& db, bool accumulate_w,
                                bool accumulate_b, const Tensor& workspace) = 0;
  // Both gradients in one call; profitable if fused, so that x and dy are read once.
  virtual bool fuses_gradients() const { return false; }
  virtual void backward_both(Context& context, const Tensor& x, const OutputGradient& g,
                             const Tensor& w, const Tensor& dx, const Tensor& dw, const Tensor& db,
                             bool accumulate_w, bool accumulate_b, const Tensor& workspace) {
    backward_weights(context, x, g, dw, db, accumulate_w, accumulate_b, workspace);
    backward_data(context, g, w, dx, workspace);
  }
};

// Wraps `inner` for weights (and their gradient) in another format than it wants: they are
// reordered at each call. w, dtype: of the weights; wanted: inner's format.
std::unique_ptr<LinearKernel> with_weights_in(const Format& format,
                                              std::unique_ptr<LinearKernel> inner, const Shape& w,
                                              DType dtype, const Format& wanted);

}  // namespace crema
