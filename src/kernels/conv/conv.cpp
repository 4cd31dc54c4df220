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

std::unique_ptr<LinearKernel> make_conv(Context& context, const ConvCase& c) {
  const int axes = c.x.axes() - 2;
  require(axes >= 1 && axes <= kMaxSpatialAxes, "a convolution over ", axes,
          " spatial axes is not supported: 1 to ", kMaxSpatialAxes);
  static const std::vector<Implementation<LinearKernel, ConvCase>> list = {
#ifdef CREMA_CUDA
      {"autotuned", make_conv_autotuned},
      {"stem_7x7s2", make_conv_stem_7x7s2},
      {"stem_3x3", make_conv_stem_3x3},
      {"space_to_depth", make_conv_space_to_depth},
      {"per_group", make_conv_per_group},
      {"cudnn", make_conv_cudnn},
      {"depthwise_tensor", make_conv_depthwise_tensor},
#endif
#ifdef CREMA_ONEDNN
      {"onednn", make_conv_onednn},
#endif
      {"depthwise", make_conv_depthwise},
      {"im2col", make_conv_im2col},
      {"plain", make_conv_reference},
  };
  std::unique_ptr<LinearKernel> conv = choose(context, "the convolution", c, list);
  if (c.weights_format && !same_layout(*c.weights_format, conv->weights_format(), c.w)) {
    const Format format = conv->weights_format();
    conv = with_weights_in(*c.weights_format, std::move(conv), c.w, c.dtype, format);
  }
  return conv;
}

}  // namespace crema
