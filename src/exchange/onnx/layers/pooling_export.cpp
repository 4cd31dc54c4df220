// Poolings. ONNX counts windows in other ways than Caffe, so padding is written explicitly: the same
// on both sides where that gives as many windows, because ncnn's pnnx and tools for chips read no
// other, or else as much behind the image as the last window reaches.
#include <algorithm>
#include <limits>

#include "exchange/onnx/layers/axis_matrices.h"
#include "layers/vision/pooling_window.h"
#include "proto/params/modern_shape.pb.h"
#include "proto/params/pooling.pb.h"

namespace crema {
namespace {

// What one axis needs in front and behind, and how many windows there are.
struct AxisWindows {
  int64_t extent, kernel, stride, pad, dilation, count;

  int64_t span() const { return (kernel - 1) * dilation + 1; }
  // Beyond the image. Windows that would reach further do not count, so values may be left unread.
  int64_t behind() const {
    const int64_t way = extent + 2 * pad - span();
    if (way >= 0 && way / stride + 1 == count) return pad;
    return std::max<int64_t>((count - 1) * stride + span() - extent - pad, 0);
  }
  bool rounds_up() const { return (extent + 2 * pad - span() + stride - 1) / stride + 1 == count; }
};

struct Windows {
  std::vector<AxisWindows> axes;

  std::vector<int64_t> all(int64_t AxisWindows::*field) const {
    std::vector<int64_t> values;
    for (const AxisWindows& axis : axes) values.push_back(axis.*field);
    return values;
  }
  bool is_whole() const {
    for (const AxisWindows& axis : axes)
      if (axis.kernel != axis.extent || axis.pad != 0 || axis.count != 1) return false;
    return true;
  }
};

OnnxAttributes settings_of(const Windows& windows, const std::vector<int64_t>& front,
                           const std::vector<int64_t>& behind) {
  std::vector<int64_t> pads = front;
  pads.insert(pads.end(), behind.begin(), behind.end());
  OnnxAttributes settings = {{"kernel_shape", windows.all(&AxisWindows::kernel)},
                             {"strides", windows.all(&AxisWindows::stride)},
                             {"pads", pads}};
  for (const AxisWindows& axis : windows.axes) {
    if (axis.dilation == 1) continue;
    settings.push_back({"dilations", windows.all(&AxisWindows::dilation)});
    break;
  }
  return settings;
}

struct Operator {
  std::string name;
  std::vector<std::string> inputs;
  OnnxAttributes settings;
};

Operator max_pool(LayerExport& layer, const std::string& x, const Windows& windows) {
  if (windows.is_whole()) return {"GlobalMaxPool", {x}, {}};
  const size_t spatial = windows.axes.size();
  std::vector<int64_t> front(spatial), behind(spatial), around(2 * (spatial + 2));
  bool wide = false;
  for (size_t i = 0; i < spatial; ++i) {
    front[i] = windows.axes[i].pad;
    behind[i] = windows.axes[i].behind();
    around[2 + i] = front[i];
    around[spatial + 4 + i] = behind[i];
    wide = wide || std::max(front[i], behind[i]) >= windows.axes[i].kernel;
  }
  std::string image = x;
  if (wide) {  // as no operator takes it
    image = layer.pad(image, around, -std::numeric_limits<float>::max());
    front.assign(spatial, 0);
    behind.assign(spatial, 0);
  }
  return {"MaxPool", {image}, settings_of(windows, front, behind)};
}

// Caffe divides by the part of the window inside the image and its symmetric padding: that padding
// becomes zeros of the image, and what windows reach beyond it is not counted.
Operator average_pool(LayerExport& layer, const std::string& x, const Windows& windows,
                      bool count_padding) {
  if (windows.is_whole()) return {"GlobalAveragePool", {x}, {}};
  std::vector<int64_t> front, inner(2 * (windows.axes.size() + 2)), behind;
  bool dilated = false, padded = false;
  bool beyond = false;  // of Caffe's padding, or of what operators take
  for (size_t i = 0; i < windows.axes.size(); ++i) {
    const AxisWindows& axis = windows.axes[i];
    dilated = dilated || axis.dilation > 1;
    beyond = beyond || axis.behind() > axis.pad || axis.pad >= axis.kernel;
    padded = padded || axis.pad > 0;
    front.push_back(axis.pad);
    behind.push_back(axis.behind());
    inner[2 + i] = axis.pad;
    inner[windows.axes.size() + 4 + i] = std::min(behind.back(), axis.pad);
  }
  for (const AxisWindows& axis : windows.axes) {
    if (std::max(axis.pad, axis.behind()) >= axis.span())
      layer.refuse("a window is outside the image", "write round_mode: FLOOR");
    if (!count_padding && std::max(axis.pad, axis.behind()) >= axis.kernel)
      layer.refuse("operators take padding below the size of the kernel", "use less padding");
  }
  if (dilated && layer.opset() < 19) {
    layer.refuse("an average over a window with dilation is in ONNX from opset 19 on",
                 "export with -opset 21");
  }
  const bool rounds_up = std::all_of(windows.axes.begin(), windows.axes.end(),
                                     [](const AxisWindows& axis) { return axis.rounds_up(); });
  if (!padded && beyond && rounds_up) {  // pnnx takes no unequal padding of averages
    OnnxAttributes settings = settings_of(windows, front, front);
    settings.push_back({"ceil_mode", int64_t{1}});
    return {"AveragePool", {x}, settings};
  }
  if (!padded || !count_padding || !beyond) {  // the padding of an operator
    OnnxAttributes settings = settings_of(windows, front, behind);
    // Without padding in front, Caffe does not count what windows reach behind the image.
    settings.push_back({"count_include_pad", int64_t{count_padding && padded}});
    return {"AveragePool", {x}, settings};
  }
  for (size_t i = 0; i < windows.axes.size(); ++i) {
    behind[i] -= inner[windows.axes.size() + 4 + i];
    front[i] = 0;
  }
  OnnxAttributes settings = settings_of(windows, front, behind);
  settings.push_back({"count_include_pad", int64_t{0}});
  return {"AveragePool", {layer.pad(x, inner, 0)}, settings};
}

// In inference the mean of the values, weighted by themselves.
std::string stochastic_pool(LayerExport& layer, const Windows& windows) {
  layer.refuse_noise_in_training();
  const std::string squares = layer.node("Mul", {layer.bottom(), layer.bottom()});
  const Operator above = average_pool(layer, squares, windows, true);
  const Operator below = average_pool(layer, layer.bottom(), windows, true);
  const std::string sums = layer.node(below.name, below.inputs, below.settings);
  return layer.node("Div", {layer.node(above.name, above.inputs, above.settings), sums});
}

void write_operator(LayerExport& layer, const Operator& op) {
  layer.write(op.name, op.inputs, op.settings);
}

void write_max_with_mask(LayerExport& layer, const Operator& op, const Shape& x) {
  // ONNX counts positions over the whole blob, Caffe in each channel.
  const std::string indices = layer.graph().unique(layer.name("indices"));
  layer.graph().add("MaxPool", op.inputs, {layer.top(), indices}, op.settings);
  const std::string in_channel = layer.node("Mod", {indices, layer.index(x.count(2))});
  layer.write("Cast", {in_channel}, {{"to", int64_t{onnx::TensorProto::FLOAT}}}, 1);
}

void write_pooling(LayerExport& layer) {
  const PoolingParameter& p = layer.message().pooling_param();
  const Shape &x = layer.bottom_shape(), &y = layer.top_shape();
  const PoolNd window = pool_axes(layer.layer(), x);
  if (window.kernel.size() > 3)
    layer.refuse("runtimes pool over three axes at most", "pool in two steps");
  Windows windows;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    windows.axes.push_back(
        {x[axis], window.kernel[i], window.stride[i], window.pad[i], window.dilation[i], y[axis]});
  }
  switch (p.pool()) {
    case PoolingParameter::MAX: {
      const Operator op = max_pool(layer, layer.bottom(), windows);
      if (layer.tops() == 1) return write_operator(layer, op);
      if (op.inputs[0] != layer.bottom())
        layer.refuse("its mask would count positions of a padded image",
                     "export without the mask, or use padding below the size of the kernel");
      return write_max_with_mask(layer,
                                 op.name == "MaxPool"
                                     ? op
                                     : Operator{"MaxPool", op.inputs,
                                                settings_of(windows, windows.all(&AxisWindows::pad),
                                                            windows.all(&AxisWindows::pad))},
                                 x);
    }
    case PoolingParameter::AVE:
      return write_operator(layer,
                            average_pool(layer, layer.bottom(), windows, p.avg_include_pad()));
    case PoolingParameter::STOCHASTIC:
      return layer.write("Identity", {stochastic_pool(layer, windows)});
  }
}
EXPORT_LAYER(Pooling, write_pooling);
EXPORT_LAYER(Pooling3D, write_pooling);
EXPORT_LAYER(NdPooling, write_pooling);
EXPORT_LAYER(PoolingND, write_pooling);

// The means over unequal parts of an axis.
AxisMatrix mean_of_parts(int64_t extent, int64_t parts) {
  AxisMatrix matrix(parts, extent);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = part * extent / parts;
    const int64_t end = ((part + 1) * extent + parts - 1) / parts;
    for (int64_t i = first; i < end; ++i)
      matrix.at(part, i) = 1.f / static_cast<float>(end - first);
  }
  return matrix;
}

// The largest of each part of an axis.
std::string largest_of_parts(LayerExport& layer, const std::string& x, int axis, int64_t extent,
                             int64_t parts) {
  std::vector<std::string> all;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = part * extent / parts;
    const int64_t end = ((part + 1) * extent + parts - 1) / parts;
    all.push_back(layer.reduce("ReduceMax", layer.slice(x, axis, first, end), {axis}, true));
  }
  return layer.node("Concat", all, {{"axis", int64_t{axis}}});
}

void write_adaptive_pooling(LayerExport& layer) {
  const bool largest =
      layer.message().adaptive_pooling_param().pool() == AdaptivePoolingParameter::MAX;
  const Shape &x = layer.bottom_shape(), &y = layer.top_shape();
  if (x[2] % y[2] == 0 && x[3] % y[3] == 0) {
    Windows windows;
    for (const int axis : {2, 3}) {
      const int64_t size = x[axis] / y[axis];
      windows.axes.push_back({x[axis], size, size, 0, 1, y[axis]});
    }
    return write_operator(layer, largest ? max_pool(layer, layer.bottom(), windows)
                                         : average_pool(layer, layer.bottom(), windows, true));
  }
  if (largest) {
    const std::string rows = largest_of_parts(layer, layer.bottom(), 2, x[2], y[2]);
    return layer.write("Identity", {largest_of_parts(layer, rows, 3, x[3], y[3])});
  }
  layer.write("Identity", {mixed_axes(layer, layer.bottom(), mean_of_parts(x[2], y[2]),
                                      mean_of_parts(x[3], y[3]))});
}
EXPORT_LAYER(AdaptivePooling, write_adaptive_pooling);

void write_spp(LayerExport& layer) {
  const SPPParameter& p = layer.message().spp_param();
  const Shape& x = layer.bottom_shape();
  std::vector<std::string> levels;
  for (uint32_t level = 0; level < p.pyramid_height(); ++level) {
    const int64_t cells = int64_t{1} << level;
    Windows windows;
    for (const int axis : {2, 3}) {
      const int64_t size = (x[axis] + cells - 1) / cells;
      const int64_t pad = (size * cells - x[axis] + 1) / 2;
      windows.axes.push_back({x[axis], size, size, pad, 1, cells});
    }
    std::string y;
    if (p.pool() == SPPParameter::STOCHASTIC) {
      y = stochastic_pool(layer, windows);
    } else {
      const Operator op = p.pool() == SPPParameter::MAX
                              ? max_pool(layer, layer.bottom(), windows)
                              : average_pool(layer, layer.bottom(), windows, true);
      y = layer.node(op.name, op.inputs, op.settings);
    }
    if (p.pyramid_height() == 1) return layer.write("Identity", {y});
    levels.push_back(layer.node("Flatten", {y}, {{"axis", int64_t{1}}}));
  }
  layer.write("Concat", levels, {{"axis", int64_t{1}}});
}
EXPORT_LAYER(SPP, write_spp);

}  // namespace
}  // namespace crema
