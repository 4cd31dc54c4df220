// Convolution after space to depth (space_to_depth.h). For a net's first layer.
#include <algorithm>

#include "kernels/conv/conv.h"
#include "kernels/conv/space_to_depth.h"
#include "tensor/part.h"

namespace crema {
namespace {

class SpaceToDepthConv final : public LinearKernel {
 public:
  SpaceToDepthConv(const ConvCase& c, const ConvCase& in, std::unique_ptr<LinearKernel> inner)
      : blocks_(c),
        in_(in),
        format_{Order::channels_last, nullptr, c.x_channels},
        inner_(std::move(inner)) {
    const auto position = [this](const Shape& shape, const Format& format, DType dtype) {
      const size_t at = kept_;
      kept_ += aligned(static_cast<size_t>(format.elements(shape)) * size_of(dtype));
      return at;
    };
    image_at_ = position(in.x, image_format(), in.dtype);
    weights_at_ = position(in.w, inner_->weights_format(), DType::f32);  // or their gradient
  }

  Format weights_format() const override { return format_; }
  size_t workspace() const override { return kept_ + inner_->workspace(); }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    const Tensor weights = block_weights(workspace, in_.dtype);
    weights_to_depth(context, blocks_, w, weights);
    inner_->forward(context, to_depth(context, x, workspace), weights, b, y, rest(workspace));
  }

  void backward_data(Context&, const OutputGradient&, const Tensor&, const Tensor&,
                     const Tensor&) override {
    fail("a convolution on blocks has no gradient of the data");
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor&, bool accumulate, bool,
                        const Tensor& workspace) override {
    const Tensor gradient = block_weights(workspace, DType::f32);
    inner_->backward_weights(context, to_depth(context, x, workspace), g, gradient, Tensor(), false,
                             false, rest(workspace));
    weights_gradient_from_depth(context, blocks_, gradient, dw, accumulate);
  }

 private:
  Format image_format() const { return {Order::channels_last, nullptr, in_.x_channels}; }
  Tensor to_depth(Context& context, const Tensor& x, const Tensor& workspace) const {
    const Tensor image = part_of(workspace, image_at_, in_.x, in_.dtype, image_format());
    space_to_depth(context, blocks_, x, image);
    return image;
  }
  Tensor block_weights(const Tensor& workspace, DType dtype) const {
    return part_of(workspace, weights_at_, in_.w, dtype, inner_->weights_format());
  }
  Tensor rest(const Tensor& workspace) const {
    if (inner_->workspace() == 0) return {};
    return part_of(workspace, kept_, {static_cast<int64_t>(inner_->workspace())}, DType::u8);
  }

  SpaceToDepthCase blocks_;
  ConvCase in_;
  Format format_;
  std::unique_ptr<LinearKernel> inner_;
  size_t image_at_ = 0, weights_at_ = 0, kept_ = 0;
};

std::unique_ptr<LinearKernel> make_conv_space_to_depth(Context& context, const ConvCase& c,
                                                       std::string& reason) {
  if (!SpaceToDepthCase::supports(c, reason)) return nullptr;
  const ConvCase in = SpaceToDepthCase(c).inner(c);
  // Implicit GEMM does not profit from space to depth: it reads the image as it is.
  std::unique_ptr<LinearKernel> inner = conv_kernels.make_named("cudnn", context, in, reason);
  if (!inner) return nullptr;
  return std::make_unique<SpaceToDepthConv>(c, in, std::move(inner));
}

REGISTER_KERNEL(conv_kernels, "space_to_depth", RunsOn::gpu, 80, make_conv_space_to_depth);

}  // namespace
}  // namespace crema
