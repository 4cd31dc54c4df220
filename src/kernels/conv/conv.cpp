#include "kernels/conv/conv.h"

#include <algorithm>

#include "kernels/conv/conv_bodies.h"

namespace crema {
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

std::unique_ptr<WeightedSum> make_conv(Context& context, const ConvCase& c) {
  const int axes = c.x.axes() - 2;
  require(axes >= 1 && axes <= kMostSpatialAxes, "a convolution over ", axes,
          " spatial axes is not supported: 1 to ", kMostSpatialAxes);
  static const std::vector<Implementation<WeightedSum, ConvCase>> list = {
#ifdef CREMA_CUDA
      {"fastest", make_conv_fastest},     {"rows", make_conv_rows},
      {"pixels", make_conv_pixels},       {"blocks", make_conv_blocks},
      {"groups", make_conv_groups},       {"cudnn", make_conv_cudnn},
      {"tensor", make_conv_tensor},
#endif
#ifdef CREMA_ONEDNN
      {"onednn", make_conv_onednn},
#endif
      {"depthwise", make_conv_depthwise}, {"im2col", make_conv_im2col},
      {"plain", make_conv_plain},
  };
  std::unique_ptr<WeightedSum> conv = choose(context, "the convolution", c, list);
  if (c.weights_format && !same_layout(*c.weights_format, conv->weights_format(), c.w)) {
    const Format format = conv->weights_format();
    conv = with_weights_in(*c.weights_format, std::move(conv), c.w, c.dtype, format);
  }
  return conv;
}

}  // namespace crema
