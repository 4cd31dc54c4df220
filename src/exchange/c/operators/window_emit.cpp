#include "exchange/c/operators/window_emit.h"

namespace crema {

std::string CWindow::text() const {
  const auto list = [](const std::vector<int64_t>& values) {
    return cat("{", values[0], ", ", values[1], ", ", values[2], "}");
  };
  return cat("{", list(in), ", ", list(out), ", ", list(kernel), ", ", list(stride), ", ",
             list(pad), ", ", list(dilation), "}");
}

CFields CWindow::fields() const {
  CFields fields;
  fields.add("in", in).add("out", out).add("kernel", kernel);
  fields.add("stride", stride).add("pad", pad).add("dilation", dilation);
  return fields;
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
