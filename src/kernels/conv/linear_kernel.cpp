#include "kernels/conv/linear_kernel.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/move/reorder.h"
#include "tensor/on.h"
#include "tensor/part.h"

namespace crema {
namespace {

class Reordered final : public LinearKernel {
 public:
  Reordered(const Format& format, std::unique_ptr<LinearKernel> inner, const Shape& w, DType dtype,
            const Format& wanted)
      : format_(format), inner_(std::move(inner)), w_(w), wanted_(wanted) {
    // Gradients of 16-bit weights are float32.
    kept_ = aligned(static_cast<size_t>(wanted.elements(w)) * std::max<size_t>(size_of(dtype), 4));
  }

  Format weights_format() const override { return format_; }
  size_t workspace() const override { return kept_ + inner_->workspace(); }
  LinearKernelFeatures features() const override {
    const LinearKernelFeatures inner = inner_->features();
    return {.relu_gradient = inner.relu_gradient,
            .bias_gradient = inner.bias_gradient,
            .sum = inner.sum};
  }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    inner_->forward(context, x, reordered(context, w, workspace), b, y, rest(workspace));
  }

  void forward_with_sum(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                        const Tensor& added, Relu relu, const Tensor& y,
                        const Tensor& workspace) override {
    inner_->forward_with_sum(context, x, reordered(context, w, workspace), b, added, relu, y,
                             rest(workspace));
  }

  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor& workspace) override {
    inner_->backward_data(context, g, reordered(context, w, workspace), dx, rest(workspace));
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    const Tensor scratch =
        accumulate_w ? reordered(context, dw, workspace) : weights(workspace, dw.dtype());
    inner_->backward_weights(context, x, g, scratch, db, accumulate_w, accumulate_b,
                             rest(workspace));
    reorder(context, scratch, dw);
  }

 private:
  Tensor weights(const Tensor& workspace, DType dtype) const {
    return part_of(workspace, 0, w_, dtype, wanted_);
  }
  Tensor reordered(Context& context, const Tensor& w, const Tensor& workspace) const {
    const Tensor scratch = weights(workspace, w.dtype());
    reorder(context, w, scratch);
    return scratch;
  }
  Tensor rest(const Tensor& workspace) const {
    if (inner_->workspace() == 0) return {};
    return part_of(workspace, kept_, {static_cast<int64_t>(inner_->workspace())}, DType::u8);
  }

  Format format_;
  std::unique_ptr<LinearKernel> inner_;
  Shape w_;
  Format wanted_;
  size_t kept_;
};

}  // namespace

void LinearKernel::forward_with_bytes(Context&, const LinearOperands&, const Tensor&) {
  fail("this kernel takes no integers");
}

void LinearKernel::forward_with_statistics(Context&, const Tensor&, const Tensor&, const Tensor&,
                                           const Tensor&, const Tensor&, const Tensor&) {
  fail("this kernel computes no sums of channels");
}

void LinearKernel::backward_weights_affine(Context&, const Tensor&, const Tensor&, const Tensor&,
                                           const Tensor&, bool, const Tensor&) {
  fail("this kernel takes no scale and shift of x");
}

FusedGradients begin_backward(Context& context, const LinearKernelFeatures& features,
                              const Tensor& dy, const Tensor& y, ReluSlopes slopes,
                              const Tensor& db, bool accumulate_b, bool weights) {
  const bool separate_db = db && !(features.bias_gradient && weights);
  // A pass that includes db also includes the ReLU.
  const bool separate_relu = y && (!features.relu_gradient || separate_db);
  if (separate_relu || separate_db) {
    const bool last = dy.format().order == Order::channels_last;
    const int64_t images = dy.shape()[0], points = dy.shape().count(2);
    on_real(dy, [&]<typename T>() {
      relu_and_bias_gradient(context, last ? images * points : images, dy.shape()[1],
                             last ? 1 : points, separate_relu ? y.data<T>() : nullptr, slopes,
                             dy.data<T>(), separate_db ? db.data<Compute<T>>() : nullptr,
                             accumulate_b);
    });
  }
  return {y && !separate_relu, separate_db ? Tensor() : db};
}

std::unique_ptr<LinearKernel> with_weights_in(const Format& format,
                                              std::unique_ptr<LinearKernel> inner, const Shape& w,
                                              DType dtype, const Format& wanted) {
  return std::make_unique<Reordered>(format, std::move(inner), w, dtype, wanted);
}

}  // namespace crema
