#include "exchange/c/operators/window_emit.h"

namespace crema {

std::string CWindow::text() const {
  const auto list = [](const std::vector<int64_t>& values) {
    return cat("{", values[0], ", ", values[1], ", ", values[2], "}");
  };
  return cat("{", list(in), ", ", list(out), ", ", list(kernel), ", ", list(stride), ", ",
             list(pad), ", ", list(dilation), "}");
}

bool CWindow::is_point() const {
  const std::vector<int64_t> one = {1, 1, 1}, zero = {0, 0, 0};
  return kernel == one && stride == one && pad == zero && in == out;
}

CWindow CWindow::joined() const {
  CWindow window = *this;
  if (is_point()) window.in = window.out = {1, 1, positions()};
  return window;
}

CFields CWindow::fields() const {
  CFields fields;
  fields.add("in", in).add("out", out).add("kernel", kernel);
  fields.add("stride", stride).add("pad", pad).add("dilation", dilation);
  return fields;
}

bool is_depthwise(const CWindow& window, int64_t channels) {
  constexpr int64_t kMostTaps = 16;  // MOST_TAPS of depthwise.c, MOST_INT8_TAPS of depthwise_int8.c
  return channels == 1 && window.kernel[0] == 1 && window.in[0] == 1 &&
         window.kernel[1] <= kMostTaps && window.kernel[2] <= kMostTaps;
}

DepthwiseRing::DepthwiseRing(const CWindow& window) {
  constexpr int64_t kMostLanes = 16;  // positions that are computed together, at most
  span = (window.kernel[1] - 1) * window.dilation[1] + 1;
  const int64_t positions = (window.out[2] + kMostLanes - 1) / kMostLanes * kMostLanes;
  step = positions + (window.kernel[2] - 1) * window.dilation[2] / window.stride[2];
  size = span * window.stride[2] * step;
}

CWindow read_window(const OperatorEmit& op, const Shape& x, std::vector<int64_t> kernel) {
  const int spatial = x.axes() - 2;
  require(spatial >= 1 && spatial <= 3, "its image has ", spatial,
          " axes, and C functions have windows over one to three");
  const auto list = [&](const char* name, int64_t otherwise) {
    std::vector<int64_t> values = op.op.ints_of(name);
    if (values.empty()) values.assign(spatial, otherwise);
    return values;
  };
  const std::string automatic = op.op.string_of("auto_pad", "NOTSET");
  require(automatic == "NOTSET" || automatic == "VALID", "auto_pad ", automatic,
          " is not written by Crema");
  std::vector<int64_t> stride = list("strides", 1), dilation = list("dilations", 1);
  std::vector<int64_t> pads = op.op.ints_of("pads");
  if (pads.empty()) pads.assign(2 * spatial, 0);
  CWindow window;
  const int missing = 3 - spatial;
  window.in.assign(missing, 1);
  window.out = window.kernel = window.stride = window.dilation = window.in;
  window.pad.assign(missing, 0);
  const bool rounds_up = op.op.int_of("ceil_mode", 0) != 0;
  for (int i = 0; i < spatial; ++i) {
    const int64_t extent = x[i + 2], span = (kernel[i] - 1) * dilation[i] + 1;
    const int64_t way = extent + pads[i] + pads[spatial + i] - span;
    window.in.push_back(extent);
    window.kernel.push_back(kernel[i]);
    window.stride.push_back(stride[i]);
    window.dilation.push_back(dilation[i]);
    window.pad.push_back(pads[i]);
    window.out.push_back((rounds_up ? way + stride[i] - 1 : way) / stride[i] + 1);
  }
  return window;
}

Shape image_shape(const Shape& x, int64_t channels, const std::vector<int64_t>& extents) {
  Shape shape{x[0], channels};
  for (int i = x.axes() - 2; i > 0; --i) shape.push_back(extents[3 - i]);
  return shape;
}

}  // namespace crema
