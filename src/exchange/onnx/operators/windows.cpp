#include "exchange/onnx/operators/windows.h"

namespace crema {

namespace {

void check_positive(const std::vector<int64_t>& values, size_t axes, const char* what) {
  require(values.size() == axes, what, " has ", values.size(), " values for ", axes,
          " spatial axes");
  for (const int64_t value : values)
    require(value > 0 && value < kMaxOnnxElements, what, " ", value, " is not positive");
}

// SAME_UPPER, SAME_LOWER and VALID.
void pad_automatically(const std::string& how, const Shape& x, OnnxWindows* w) {
  require(how == "VALID" || how == "SAME_UPPER" || how == "SAME_LOWER", "auto_pad \"", how,
          "\" is unknown");
  for (size_t i = 0; i < w->axes(); ++i) {
    if (how == "VALID") continue;
    const int64_t extent = x[static_cast<int>(i) + 2];
    const int64_t outputs = (extent + w->stride[i] - 1) / w->stride[i];
    const int64_t all = std::max<int64_t>((outputs - 1) * w->stride[i] + w->span(i) - extent, 0);
    w->before[i] = how == "SAME_LOWER" ? (all + 1) / 2 : all / 2;
    w->behind[i] = all - w->before[i];
  }
}

}  // namespace

OnnxWindows read_onnx_windows(const OperatorImport& op, std::vector<int64_t> kernel,
                              const PendingPad* pending) {
  const Shape& x = op.shape();
  require(x.axes() > 2, "its input has no spatial axes: ", x.brief());
  const size_t axes = static_cast<size_t>(x.axes()) - 2;
  OnnxWindows w;
  w.kernel = op.has_attribute("kernel_shape") ? op.ints_of("kernel_shape") : kernel;
  require(kernel.empty() || kernel == w.kernel, "kernel_shape is not that of the weights");
  w.stride = op.ints_of("strides");
  w.dilation = op.ints_of("dilations");
  if (w.stride.empty()) w.stride.assign(axes, 1);
  if (w.dilation.empty()) w.dilation.assign(axes, 1);
  check_positive(w.kernel, axes, "the kernel");
  check_positive(w.stride, axes, "strides");
  check_positive(w.dilation, axes, "dilations");
  w.before.assign(axes, 0);
  w.behind.assign(axes, 0);
  const std::vector<int64_t> pads = op.ints_of("pads");
  const std::string how = op.string_of("auto_pad", "NOTSET");
  if (how != "NOTSET" && how != "") {
    pad_automatically(how, x, &w);
  } else if (!pads.empty()) {
    require(pads.size() == 2 * axes, "pads has ", pads.size(), " values for ", axes,
            " spatial axes");
    for (size_t i = 0; i < axes; ++i) {
      for (const int64_t pad : {pads[i], pads[axes + i]})
        require(pad >= 0 && pad < kMaxOnnxElements, "a padding of ", pad);
      w.before[i] = pads[i];
      w.behind[i] = pads[axes + i];
    }
  }
  const bool rounds_up = op.int_of("ceil_mode", 0) != 0;
  for (size_t i = 0; i < axes && op.type() != "ConvTranspose"; ++i) {
    const int64_t padded = x[static_cast<int>(i) + 2] + w.before[i] + w.behind[i];
    const int64_t way = padded - w.span(i);
    require(way >= 0, "a window of ", w.span(i), " does not fit into ", padded);
    int64_t count = (way + (rounds_up ? w.stride[i] - 1 : 0)) / w.stride[i] + 1;
    // A last window that would begin in the padding behind is left out.
    if (rounds_up && (count - 1) * w.stride[i] >= padded - w.behind[i]) --count;
    w.outputs.push_back(count);
  }
  for (size_t i = 0; pending && i < axes; ++i) {
    w.before[i] += pending->before[i + 2];
    w.behind[i] += pending->behind[i + 2];
  }
  return w;
}

}  // namespace crema
