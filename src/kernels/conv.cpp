#include "kernels/conv.h"

#include <algorithm>

#include "kernels/conv_bodies.h"
#include "kernels/reorder.h"

namespace crema {
namespace {

// A convolution whose weights lie in another format than its kernel wants: they are reordered at
// each call.
class Reordered final : public Conv {
 public:
  Reordered(std::unique_ptr<Conv> inner, const ConvCase& c) : inner_(std::move(inner)), c_(c) {
    kept_ = aligned(static_cast<size_t>(inner_->weights_format().elements(c.w)) * size_of(c.dtype));
  }

  Format weights_format() const override { return *c_.weights_format; }
  size_t workspace() const override { return kept_ + inner_->workspace(); }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    inner_->forward(context, x, reordered(context, w, workspace), b, y, rest(workspace));
  }

  void backward_data(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx,
                     const Tensor& workspace) override {
    inner_->backward_data(context, dy, reordered(context, w, workspace), dx, rest(workspace));
  }

  void backward_weights(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw,
                        const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    const Tensor scratch = accumulate_w ? reordered(context, dw, workspace) : weights(workspace);
    inner_->backward_weights(context, x, dy, scratch, db, accumulate_w, accumulate_b,
                             rest(workspace));
    reorder(context, scratch, dw);
  }

 private:
  Tensor weights(const Tensor& workspace) const {
    return part_of(workspace, 0, c_.w, c_.dtype, inner_->weights_format());
  }
  Tensor reordered(Context& context, const Tensor& w, const Tensor& workspace) const {
    const Tensor scratch = weights(workspace);
    reorder(context, w, scratch);
    return scratch;
  }
  Tensor rest(const Tensor& workspace) const {
    if (inner_->workspace() == 0) return {};
    return part_of(workspace, kept_, {static_cast<int64_t>(inner_->workspace())}, DType::u8);
  }

  std::unique_ptr<Conv> inner_;
  ConvCase c_;
  size_t kept_;
};

}  // namespace

ConvGeometry geometry_of(const ConvCase& c) {
  ConvGeometry g{};
  g.axes = c.x.axes() - 2;
  g.images = c.x[0];
  g.groups = c.groups;
  g.in_channels = c.w[1];
  g.out_channels = c.w[0] / c.groups;
  g.in_points = c.x.count(2);
  g.out_points = c.y.count(2);
  g.taps = c.w.count(2);
  for (int axis = 0; axis < g.axes; ++axis) {
    g.in[axis] = c.x[axis + 2];
    g.out[axis] = c.y[axis + 2];
    g.kernel[axis] = c.w[axis + 2];
    g.stride[axis] = c.stride[axis];
    g.pad[axis] = c.pad[axis];
    g.dilation[axis] = c.dilation[axis];
  }
  return g;
}

Tensor part_of(const Tensor& workspace, size_t at, const Shape& shape, DType dtype,
               const Format& format) {
  char* const start = static_cast<char*>(workspace.raw());
  if (!workspace.memory()) return Tensor::wrap(start + at, shape, dtype, format);
  const size_t before = static_cast<size_t>(start - static_cast<char*>(workspace.memory()->data()));
  return Tensor(workspace.memory(), before + at, shape, dtype, format);
}

std::unique_ptr<Conv> make_conv(Context& context, const ConvCase& c) {
  const int axes = c.x.axes() - 2;
  require(axes >= 1 && axes <= kMostSpatialAxes, "a convolution over ", axes,
          " spatial axes is not supported: 1 to ", kMostSpatialAxes);
  static const std::vector<Implementation<Conv, ConvCase>> list = {
#ifdef CREMA_CUDA
      {"cudnn", make_conv_cudnn},
#endif
#ifdef CREMA_ONEDNN
      {"onednn", make_conv_onednn},
#endif
      {"im2col", make_conv_im2col},
      {"plain", make_conv_plain},
  };
  std::unique_ptr<Conv> conv = choose(context, "the convolution", c, list);
  if (c.weights_format && !same_layout(*c.weights_format, conv->weights_format(), c.w)) {
    conv = std::make_unique<Reordered>(std::move(conv), c);
  }
  return conv;
}

}  // namespace crema
