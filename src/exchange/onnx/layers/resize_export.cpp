// Layers that change the size of images.
#include <algorithm>
#include <cmath>
#include <limits>

#include "exchange/onnx/layers/axis_matrices.h"
#include "proto/params/forks_flow.pb.h"
#include "proto/params/forks_segmentation.pb.h"

namespace crema {
namespace {

// A factor by which ONNX's rule, floor(extent * factor), gives the wanted extent.
float factor_for(int64_t extent, int64_t wanted) {
  auto factor = static_cast<float>(static_cast<double>(wanted) / static_cast<double>(extent));
  while (static_cast<double>(extent) * factor < static_cast<double>(wanted))
    factor = std::nextafter(factor, 1e30f);
  return factor;
}

// Factors and no sizes: these would say the batch too.
void resize(LayerExport& layer, const std::string& x, const Shape& from, const char* mode,
            const char* coordinates) {
  const Shape& y = layer.top_shape();
  OnnxAttributes settings = {{"mode", std::string(mode)},
                             {"coordinate_transformation_mode", std::string(coordinates)}};
  if (std::string(mode) == "nearest") settings.push_back({"nearest_mode", std::string("floor")});
  // Not left out: some readers of opset 11 expect it.
  const std::string region = layer.opset() < 13 ? layer.floats({0}, {}) : "";
  layer.write(
      "Resize",
      {x, region, layer.floats({4}, {1, 1, factor_for(from[2], y[2]), factor_for(from[3], y[3])})},
      settings);
}

void write_interp(LayerExport& layer) {
  const InterpParameter& p = layer.message().interp_param();
  Shape x = layer.bottom_shape();
  std::string image = layer.bottom();
  if (layer.type() == "Interp") {
    for (const int axis : {2, 3}) {
      const int64_t before = -p.pad_beg(), end = x[axis] + p.pad_end();
      if (before > 0 || end < x[axis]) image = layer.slice(image, axis, before, end);
      x[axis] = end - before;
    }
  }
  const Shape& y = layer.top_shape();
  if (x[2] == y[2] && x[3] == y[3]) return layer.write("Identity", {image});
  resize(layer, image, x, "linear", "align_corners");
}
EXPORT_LAYER(Interp, write_interp);
EXPORT_LAYER(BilinearInterpolation, write_interp);

// Values go back to the positions in a mask; the rest is zero.
void write_to_positions(LayerExport& layer) {
  const Shape &x = layer.bottom_shape(), &y = layer.top_shape();
  const int64_t batch = layer.extents_of(layer.bottom_value())[0];
  const std::string values = layer.reshape(layer.bottom(0), {batch, x[1], x.count(2)});
  const std::string positions = layer.cast(
      layer.reshape(layer.bottom(1), {batch, x[1], x.count(2)}), onnx::TensorProto::INT64);
  const std::string zero = layer.node("Mul", {layer.slice(values, 2, 0, 1), layer.scalar(0)});
  const std::string zeros = layer.node("Expand", {zero, layer.ints({1, 1, y.count(2)})});
  layer.reshape_to_top(
      layer.node("ScatterElements", {zeros, positions, values}, {{"axis", int64_t{2}}}));
}

void write_upsample(LayerExport& layer) {
  if (layer.bottoms() > 1) return write_to_positions(layer);
  resize(layer, layer.bottom(), layer.bottom_shape(), "nearest", "asymmetric");
}
EXPORT_LAYER(Upsample, write_upsample);

// Each value goes to its window, or to the first position of it.
AxisMatrix spread(int64_t extent, int64_t results, int64_t kernel, int64_t stride, bool mean) {
  AxisMatrix matrix(results, extent);
  for (int64_t i = 0; i < extent; ++i) {
    const int64_t end = std::min(i * stride + kernel, results);
    for (int64_t at = i * stride; at < end; ++at)
      matrix.at(at, i) = mean ? 1.f / static_cast<float>(end - i * stride) : 1.f;
  }
  return matrix;
}

void write_unpooling(LayerExport& layer) {
  const UnpoolingParameter& p = layer.message().unpooling_param();
  const bool one = p.unpool() == UnpoolingParameter::MAX;
  if (one && layer.bottoms() == 2) return write_to_positions(layer);
  const auto along = [&](int axis, bool own_kernel, int64_t kernel, bool own_stride,
                         int64_t stride) {
    return spread(layer.bottom_shape()[axis], layer.top_shape()[axis],
                  one          ? 1
                  : own_kernel ? kernel
                               : p.kernel_size(),
                  own_stride ? stride : p.stride(), p.unpool() == UnpoolingParameter::AVE);
  };
  layer.write(
      "Identity",
      {mixed_axes(layer, layer.bottom(),
                  along(2, p.has_kernel_h(), p.kernel_h(), p.has_stride_h(), p.stride_h()),
                  along(3, p.has_kernel_w(), p.kernel_w(), p.has_stride_w(), p.stride_w()))});
}
EXPORT_LAYER(Unpooling, write_unpooling);
EXPORT_LAYER(UnPooling, write_unpooling);

double triangle_of(double distance) { return std::max(0.0, 1 - std::abs(distance)); }
double cubic_of(double distance) {
  const double x = std::abs(distance);
  if (x >= 2) return 0;
  return x <= 1 ? (1.5 * x - 2.5) * x * x + 1 : ((-0.5 * x + 2.5) * x - 4) * x + 2;
}

// Result i is the mean of the values around place + i * step, weighted by their distance over
// `width`; weight: null for the nearest value.
AxisMatrix means_around(int64_t extent, int64_t results, double place, double step, double width,
                        double (*weight)(double)) {
  AxisMatrix matrix(results, extent);
  for (int64_t i = 0; i < results; ++i) {
    const double at = place + static_cast<double>(i) * step;
    if (weight == nullptr) {
      const auto nearest = static_cast<int64_t>(std::floor(at + 0.5));
      matrix.at(i, std::clamp<int64_t>(nearest, 0, extent - 1)) = 1;
      continue;
    }
    std::vector<double> weights;
    double sum = 0;
    for (int64_t k = 0; k < extent; ++k) {
      weights.push_back(weight((static_cast<double>(k) - at) / width));
      sum += weights.back();
    }
    for (int64_t k = 0; k < extent; ++k) matrix.at(i, k) = static_cast<float>(weights[k] / sum);
  }
  return matrix;
}

void write_resample(LayerExport& layer) {
  const ResampleParameter& p = layer.message().resample_param();
  const bool cubic = p.type() == ResampleParameter::CUBIC;
  const auto along = [&](int axis) {
    const int64_t extent = layer.bottom_shape()[axis], results = layer.top_shape()[axis];
    const double factor = static_cast<double>(extent) / static_cast<double>(results);
    return means_around(extent, results, factor / 2 - 0.5, factor,
                        p.antialias() ? std::max(factor, 1.0) : 1,
                        p.type() == ResampleParameter::NEAREST ? nullptr
                        : cubic                                ? cubic_of
                                                               : triangle_of);
  };
  layer.write("Identity", {mixed_axes(layer, layer.bottom(), along(2), along(3))});
}
EXPORT_LAYER(Resample, write_resample);

// NaN is an unknown value: it does not count, and with too many of them a result is unknown.
void write_downsample(LayerExport& layer) {
  const auto along = [&](int axis) {
    const int64_t extent = layer.bottom_shape()[axis], results = layer.top_shape()[axis];
    const double step =
        results > 1 ? static_cast<double>(extent - 1) / static_cast<double>(results - 1) : 1;
    return means_around(extent, results, 0, step, step, triangle_of);
  };
  const AxisMatrix rows = along(2), columns = along(3);
  const std::string unknown = layer.node("IsNaN", {layer.bottom()});
  const std::string values = layer.node("Where", {unknown, layer.scalar(0), layer.bottom()});
  const std::string weight = mixed_axes(
      layer, layer.cast(layer.node("Not", {unknown}), onnx::TensorProto::FLOAT), rows, columns);
  const std::string sum = mixed_axes(layer, values, rows, columns);
  // Known unless the missing weight is more than half of the known one.
  const std::string enough =
      layer.node("Not", {layer.node("Less", {layer.node("Div", {weight, layer.scalar(2)}),
                                             layer.node("Sub", {layer.scalar(1), weight})})});
  layer.write("Where", {enough, layer.node("Div", {sum, weight}),
                        layer.scalar(std::numeric_limits<float>::quiet_NaN())});
}
EXPORT_LAYER(Downsample, write_downsample);

}  // namespace
}  // namespace crema
