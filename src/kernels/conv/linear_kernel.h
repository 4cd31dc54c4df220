// The interface of convolutions and fully connected layers: y = relu(w * x + b), where * is the
// convolution or matrix product, and its gradients.
#pragma once

#include <cstddef>
#include <memory>

#include "device/aligned.h"
#include "kernels/conv/conv_call.h"
#include "kernels/pointwise/add.h"
#include "kernels/pointwise/bias.h"
#include "kernels/pointwise/dropout.h"
#include "tensor/tensor.h"

namespace crema {

// The gradient of y. It has already passed through the case's ReLU, unless y is given: then the
// callee applies the ReLU's gradient.
struct OutputGradient {
  const Tensor& dy;
  const Tensor* y = nullptr;
  float factor = 1;  // dy is multiplied by it; other than 1 only with y
  OutputGradient(const Tensor& gradient) : dy(gradient) {}  // NOLINT(google-explicit-constructor)
  OutputGradient(const Tensor& gradient, const Tensor& output) : dy(gradient), y(&output) {}
};

class Benchmark;  // benchmark.h

// What a kernel fuses: fixed once it is made.
struct LinearKernelFeatures {
  // forward_with_statistics() is supported, and measured to cost less than a separate pass over y.
  bool forward_statistics = false;
  // It accepts `affine`, and is measured to cost less than writing that x.
  bool forward_affine_input = false;
  bool wgrad_affine_input = false;  // likewise backward_weights_affine()
  bool relu_gradient = false;       // the backward calls accept OutputGradient::y
  bool bias_gradient = false;       // backward_weights() accepts db
  // dw and db are added to by atomics, in varying order: prefers `accumulate`, into cleared tensors.
  bool atomic_wgrad = false;
  bool fused_gradients = false;  // backward_both() reads x and dy once
  bool dropout = false;          // forward_with_dropout() makes no pass over y for it
  bool sum = false;              // likewise forward_with_sum()
  bool y_bytes = false;          // forward_with_bytes() writes y_bytes
  ConvCalls calls = {};          // what it supports of the calls that its case asks for

  bool relu_and_bias_gradient() const { return relu_gradient && bias_gradient; }
};

// The operands of forward_with_bytes(). Which there are follows from the case: x or x_bytes; y, y_bytes or both.
struct LinearOperands {
  Tensor x = {}, x_bytes = {}, w = {}, b = {}, added = {}, y = {}, y_bytes = {};
};

// Made for one case. w and dw are in weights_format(); the workspace has at least workspace()
// bytes.
class LinearKernel {
 public:
  virtual ~LinearKernel() = default;
  virtual Format weights_format() const { return Format::row_major(); }
  virtual size_t workspace() const { return 0; }
  virtual LinearKernelFeatures features() const { return {}; }
  // For a case with `packs_weights`: the forward calls are given the weights in a form of the
  // kernel's own as w, that many bytes, which pack() computes from row-major weights whenever these
  // have changed. The name says which form it is. 0 bytes: w is in weights_format().
  struct PackedForm {
    const char* name = "";
    size_t bytes = 0;
  };
  virtual PackedForm packed_form() const { return {}; }
  virtual void pack(Context&, const Tensor& /*w*/, const Tensor& /*packed*/) const {}
  // For a case with `is_candidate`: chooses how to compute one of the calls that the kernel supports,
  // by timing unless the tuning cache knows. to_beat: milliseconds of the fastest kernel so far;
  // the choice ends early if this one is clearly slower.
  virtual void tune(Context&, const Benchmark&, ConvCall, double /*to_beat*/) {}
  // b is empty without bias.
  virtual void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                       const Tensor& y, const Tensor& workspace) = 0;
  // With a dropout of y, which has no spatial axes.
  virtual void forward_with_dropout(Context& context, const Tensor& x, const Tensor& w,
                                    const Tensor& b, const Tensor& y, const DropoutMask& mask,
                                    const Tensor& workspace) {
    forward(context, x, w, b, y, workspace);
    dropout(context, mask, y, y);
  }
  // y = relu(w * x + b + added), for a case with `sum` and this ReLU. added: like y.
  virtual void forward_with_sum(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                                const Tensor& added, Relu relu, const Tensor& y,
                                const Tensor& workspace) {
    forward(context, x, w, b, y, workspace);
    add_and_relu(context, added, relu, y);
  }
  // For a case with x_bytes or y_bytes: y = relu(w * x + b + added), the last two if they are there.
  virtual void forward_with_bytes(Context&, const LinearOperands&, const Tensor& workspace);
  // Also sums each channel of y and of its squares: sums (2, channels), float32. The order of
  // additions may differ from call to call. affine (2, channels of x), float16: the convolution's
  // input is relu(x * affine[0] + affine[1]); empty: x itself.
  virtual void forward_with_statistics(Context&, const Tensor& x, const Tensor& affine,
                                       const Tensor& w, const Tensor& y, const Tensor& sums,
                                       const Tensor& workspace);
  virtual void backward_data(Context& context, const OutputGradient& g, const Tensor& w,
                             const Tensor& dx, const Tensor& workspace) = 0;
  // db: empty unless features().bias_gradient. accumulate: add instead of overwrite.
  virtual void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                                const Tensor& dw, const Tensor& db, bool accumulate_w,
                                bool accumulate_b, const Tensor& workspace) = 0;
  // backward_weights() without bias for an x that `affine` gives, as in forward_with_statistics().
  virtual void backward_weights_affine(Context&, const Tensor& x, const Tensor& affine,
                                       const Tensor& dy, const Tensor& dw, bool accumulate,
                                       const Tensor& workspace);
  // Both gradients in one call.
  virtual void backward_both(Context& context, const Tensor& x, const OutputGradient& g,
                             const Tensor& w, const Tensor& dx, const Tensor& dw, const Tensor& db,
                             bool accumulate_w, bool accumulate_b, const Tensor& workspace) {
    backward_weights(context, x, g, dw, db, accumulate_w, accumulate_b, workspace);
    backward_data(context, g, w, dx, workspace);
  }
};

// What the backward calls of a kernel compute beyond dx and dw.
struct FusedGradients {
  bool relu = false;  // they take y
  Tensor db;          // backward_weights() takes it; may be empty
};
// Comes before the backward calls of a kernel: computes what it does not fuse in one pass over dy
// (N, channels, ...), and returns the rest.
// y: of the ReLU that dy must be taken through, in place unless fused; empty: none. slopes: of that
// ReLU. db may be empty. weights: whether backward_weights() will be called.
FusedGradients begin_backward(Context& context, const LinearKernelFeatures& features,
                              const Tensor& dy, const Tensor& y, ReluSlopes slopes,
                              const Tensor& db, bool accumulate_b, bool weights);

// Wraps `inner` for weights (and their gradient) in another format than it wants: they are
// reordered at each call. w, dtype: of the weights; wanted: inner's format.
std::unique_ptr<LinearKernel> with_weights_in(const Format& format,
                                              std::unique_ptr<LinearKernel> inner, const Shape& w,
                                              DType dtype, const Format& wanted);

}  // namespace crema
