// Layers that combine blobs, or a blob with learned values, element by element.
#include <algorithm>
#include <numeric>

#include "exchange/onnx/layer_export.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

// How the values of a Scale or Bias are laid along the first bottom.
struct Laid {
  int first, count;

  Laid(const LayerExport& layer, int axis, int num_axes) {
    const Shape& x = layer.bottom_shape();
    const bool given = layer.bottoms() > 1;
    const int axes = given ? layer.bottom_shape(1).axes() : num_axes;
    first = axes == 0 ? 0 : x.canonical_axis(axis);
    count = axes == -1 ? x.axes() - first : axes;
  }
  int behind(const Shape& x) const { return x.axes() - first - count; }
  bool along_channels(const LayerExport& layer) const {
    return layer.bottoms() == 1 && first == 1 && count == 1;
  }
};

// A parameter in the shape with which ONNX lays it along x.
std::string laid_parameter(LayerExport& layer, const Laid& laid, int index) {
  for (int axis = laid.first; axis < laid.first + laid.count; ++axis)
    if (layer.bottom_value().varies(axis))
      layer.require_fixed_batch("it has learned values for each sample of the batch");
  const int behind = laid.behind(layer.bottom_shape());
  const Shape& shape = layer.parameter_shape(index);
  std::vector<int64_t> extents = shape.dims();
  extents.resize(extents.size() + behind, 1);
  return layer.parameter(index, extents);
}

// The same of the second bottom or, without one, of parameter 0.
std::string laid_values(LayerExport& layer, const Laid& laid) {
  if (layer.bottoms() == 1) return laid_parameter(layer, laid, 0);
  const int behind = laid.behind(layer.bottom_shape());
  if (behind == 0) return layer.bottom(1);
  std::vector<int64_t> axes(behind);
  std::iota(axes.begin(), axes.end(), laid.count);
  return layer.unsqueeze(layer.bottom(1), axes);
}

std::vector<double> doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

void write_scale(LayerExport& layer) {
  const ScaleParameter& p = layer.message().scale_param();
  const Laid laid(layer, p.axis(), p.num_axes());
  const bool given = layer.bottoms() > 1;
  const bool clipped = p.has_min_value() || p.has_max_value();
  const bool trains = layer.trains(0) || layer.trains(1);
  if (laid.along_channels(layer) && layer.options().fold && !clipped && !trains) {
    ChannelLine line;
    line.factor = doubles(layer.parameter_values(0));
    line.shift = p.bias_term() ? doubles(layer.parameter_values(1))
                               : std::vector<double>(line.factor.size());
    return layer.graph().add_line(layer.bottom(), layer.top(), layer.bottom_shape().axes(), line);
  }
  std::string factor = laid_values(layer, laid);
  if (clipped) {
    constexpr float kNone = std::numeric_limits<float>::infinity();
    factor = layer.clip(factor, p.has_min_value() ? p.min_value() : -kNone,
                        p.has_max_value() ? p.max_value() : kNone);
  }
  if (!p.bias_term()) return layer.write("Mul", {layer.bottom(), factor});
  const std::string product = layer.node("Mul", {layer.bottom(), factor});
  layer.write("Add", {product, laid_parameter(layer, laid, given ? 0 : 1)});
}
EXPORT_LAYER(Scale, write_scale);

void write_bias(LayerExport& layer) {
  const BiasParameter& p = layer.message().bias_param();
  const Laid laid(layer, p.axis(), p.num_axes());
  if (laid.along_channels(layer) && layer.options().fold && !layer.trains(0)) {
    ChannelLine line;
    line.shift = doubles(layer.parameter_values(0));
    line.factor.assign(line.shift.size(), 1);
    return layer.graph().add_line(layer.bottom(), layer.top(), layer.bottom_shape().axes(), line);
  }
  layer.write("Add", {layer.bottom(), laid_values(layer, laid)});
}
EXPORT_LAYER(Bias, write_bias);

void write_eltwise(LayerExport& layer) {
  const EltwiseParameter& p = layer.message().eltwise_param();
  const char* const op = p.operation() == EltwiseParameter::SUM    ? "Add"
                         : p.operation() == EltwiseParameter::PROD ? "Mul"
                                                                   : "Max";
  std::vector<std::string> inputs;
  for (int i = 0; i < layer.bottoms(); ++i) {
    const float factor = i < p.coeff_size() ? p.coeff(i) : 1;
    inputs.push_back(factor == 1 ? layer.bottom(i)
                                 : layer.node("Mul", {layer.bottom(i), layer.scalar(factor)}));
  }
  if (inputs.size() == 1) return layer.write("Identity", inputs);
  // Of equal values in a maximum, gradients reach the second one: that of the first two bottoms, and after
  // them the earlier one.
  const auto pair = [&](const std::string& before, size_t i) {
    const bool turned = p.operation() == EltwiseParameter::MAX && i > 1;
    return turned ? std::vector{inputs[i], before} : std::vector{before, inputs[i]};
  };
  std::string result = inputs[0];
  for (size_t i = 1; i + 1 < inputs.size(); ++i) result = layer.node(op, pair(result, i));
  layer.write(op, pair(result, inputs.size() - 1));
}
EXPORT_LAYER(Eltwise, write_eltwise);

void write_axpy(LayerExport& layer) {
  std::string factor = layer.bottom(0);
  const int axes = layer.bottom_shape(1).axes();
  if (layer.bottom_shape(0).axes() == 2 && axes > 2) {
    std::vector<int64_t> added(axes - 2);
    std::iota(added.begin(), added.end(), 2);
    factor = layer.unsqueeze(factor, added);
  } else if (layer.bottom_shape(0).axes() != axes) {
    std::vector<int64_t> extents(axes, 1);
    extents[0] = -1;
    extents[1] = layer.bottom_shape(0)[1];
    factor = layer.reshape(factor, extents);
  }
  layer.write("Add", {layer.node("Mul", {layer.bottom(1), factor}), layer.bottom(2)});
}
EXPORT_LAYER(Axpy, write_axpy);

}  // namespace
}  // namespace crema
