// What convolutions and fully connected layers are to their callers: y = relu(b + sums of x
// weighted with w), and the gradients.
#pragma once

#include <cstddef>
#include <memory>

#include "device/aligned.h"
#include "kernels/core/dropout.h"
#include "tensor/tensor.h"

namespace crema {

// A gradient that arrives at y. It has gone through the case's ReLU, unless y comes along: then the
// callee takes it through.
struct OutputGradient {
  const Tensor& dy;
  const Tensor* y = nullptr;
  float factor = 1;  // dy is multiplied by it; other than 1 only with y and takes_relu()
  OutputGradient(const Tensor& gradient) : dy(gradient) {}  // NOLINT(google-explicit-constructor)
  OutputGradient(const Tensor& gradient, const Tensor& output) : dy(gradient), y(&output) {}
};

// Made for one case. w and dw lie in weights_format(); the workspace has at least workspace()
// bytes.
class WeightedSum {
 public:
  virtual ~WeightedSum() = default;
  virtual Format weights_format() const { return Format::plain(); }
  virtual size_t workspace() const { return 0; }
  // forward_summing() can be called, and was measured to cost less than a pass over y.
  virtual bool gives_sums() const { return false; }
  // forward_summing() can take `affine`, and was measured to cost less than writing that x.
  virtual bool takes_affine() const { return false; }
  virtual bool gradient_takes_affine() const { return false; }  // likewise
  // The backward calls take y of the case's ReLU along, and backward_weights sums db.
  virtual bool takes_relu() const { return false; }
  // backward_weights and backward_both add to dw and db, in any order: faster with `accumulate`,
  // into cleared ones.
  virtual bool adds_weights() const { return false; }
  // b is empty without bias.
  virtual void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                       const Tensor& y, const Tensor& workspace) = 0;
  // backward_weights() without bias from such an x, where gradient_takes_affine().
  virtual void backward_weights_affine(Context&, const Tensor& x, const Tensor& affine,
                                       const Tensor& dy, const Tensor& dw, bool accumulate,
                                       const Tensor& workspace);
  // With a dropout of y, a list of values without spatial axes.
  virtual void forward_dropping(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                                const Tensor& y, const DropoutMask& mask, const Tensor& workspace) {
    forward(context, x, w, b, y, workspace);
    dropout(context, mask, y, y);
  }
  // And adds up each channel of y, and their squares: sums (2, channels), float32. The order of
  // additions may differ from call to call. affine (2, channels of x), float16: what is summed is
  // relu(x * affine[0] + affine[1]); empty: x itself.
  virtual void forward_summing(Context&, const Tensor& x, const Tensor& affine, const Tensor& w,
                               const Tensor& y, const Tensor& sums, const Tensor& workspace);
  virtual void backward_data(Context& context, const OutputGradient& g, const Tensor& w,
                             const Tensor& dx, const Tensor& workspace) = 0;
  // db may be empty. accumulate: add instead of overwrite.
  virtual void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                                const Tensor& dw, const Tensor& db, bool accumulate_w,
                                bool accumulate_b, const Tensor& workspace) = 0;
  // Both gradients by one call; worth it where they are joined, that is x and dy read once.
  virtual bool joins_gradients() const { return false; }
  virtual void backward_both(Context& context, const Tensor& x, const OutputGradient& g,
                             const Tensor& w, const Tensor& dx, const Tensor& dw, const Tensor& db,
                             bool accumulate_w, bool accumulate_b, const Tensor& workspace) {
    backward_weights(context, x, g, dw, db, accumulate_w, accumulate_b, workspace);
    backward_data(context, g, w, dx, workspace);
  }
};

// The same with weights (and their gradient) in another format than `inner` wants: they are
// reordered at each call. w, dtype: of the weights; wanted: inner's format.
std::unique_ptr<WeightedSum> with_weights_in(const Format& format,
                                             std::unique_ptr<WeightedSum> inner, const Shape& w,
                                             DType dtype, const Format& wanted);

// A tensor inside the workspace, `at` bytes from its start.
Tensor part_of(const Tensor& workspace, size_t at, const Shape& shape, DType dtype,
               const Format& format = {});

}  // namespace crema
