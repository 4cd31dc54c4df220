#include "kernels/conv/conv.h"

#include "kernels/conv/conv_geometry.h"

namespace crema {

constinit KernelMakers<LinearKernel, ConvCase> conv_kernels("the convolution");

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

std::string sizes_of(const ConvCase& c) {
  const auto list = [](const std::vector<int64_t>& values) {
    std::string text;
    for (int64_t value : values) text += cat(value, ",");
    return text;
  };
  return cat(name_of(c.dtype), c.order == Order::channels_last ? " last" : " plain", " x",
             list(c.x.dims()), " in ", c.x_channels, " w", list(c.w.dims()), " y", list(c.y.dims()),
             " s", list(c.stride), " p", list(c.pad), " d", list(c.dilation), " g", c.groups,
             c.sum ? (c.sum_relu.on ? " sum relu" : " sum") : "",
             c.pooled.empty() ? "" : cat(" pooled ", list(c.pooled)));
}

std::unique_ptr<LinearKernel> make_conv(Context& context, const ConvCase& c) {
  const int axes = c.x.axes() - 2;
  require(axes >= 1 && axes <= kMaxSpatialAxes, "a convolution over ", axes,
          " spatial axes is not supported: 1 to ", kMaxSpatialAxes);
  std::unique_ptr<LinearKernel> conv =
      (c.quantization ? quantized_conv_kernels : conv_kernels).make(context, c);
  if (c.weights_format && !same_layout(*c.weights_format, conv->weights_format(), c.w)) {
    const Format format = conv->weights_format();
    conv = with_weights_in(*c.weights_format, std::move(conv), c.w, c.dtype, format);
  }
  return conv;
}

}  // namespace crema
