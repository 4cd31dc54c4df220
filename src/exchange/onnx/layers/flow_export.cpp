// Layers that read images at computed positions, and those of FlowNet.
#include <algorithm>
#include <limits>

#include "exchange/onnx/layers/sampling_export.h"
#include "layers/vision/spatial_params.h"
#include "proto/params/convolution.pb.h"
#include "proto/params/forks_flow.pb.h"
#include "proto/params/forks_segmentation.pb.h"

namespace crema {
namespace {

// As sampled(), but what positions outside of 0 to below H or W give is `outside`.
std::string sampled_inside(LayerExport& layer, const std::string& x, int64_t height, int64_t width,
                           const std::string& positions, float outside) {
  const std::string ends =
      layer.floats({1, 2, 1, 1}, {static_cast<float>(width), static_cast<float>(height)});
  const std::string begun = layer.node("Not", {layer.node("Less", {positions, layer.scalar(0)})});
  const std::string both = layer.node("And", {begun, layer.node("Less", {positions, ends})});
  const std::string inside =
      layer.cast(layer.reduce("ReduceMin", layer.cast(both, onnx::TensorProto::FLOAT), {1}, true),
                 onnx::TensorProto::BOOL);
  const std::string values = sampled(layer, x, height, width, positions, true);
  return layer.node("Where", {inside, values, layer.scalar(outside)});
}

void write_flow_warp(LayerExport& layer) {
  const bool nan =
      layer.message().flow_warp_param().fill_value() == FlowWarpParameter::NOT_A_NUMBER;
  const Shape& x = layer.bottom_shape();
  std::vector<float> places(2 * x.count(2));
  for (int64_t i = 0; i < x.count(2); ++i) {
    places[i] = static_cast<float>(i % x[3]);
    places[x.count(2) + i] = static_cast<float>(i / x[3]);
  }
  const std::string positions =
      layer.node("Add", {layer.bottom(1), layer.floats({1, 2, x[2], x[3]}, places)});
  layer.write("Identity", {sampled_inside(layer, layer.bottom(), x[2], x[3], positions,
                                          nan ? std::numeric_limits<float>::quiet_NaN() : 0)});
}
EXPORT_LAYER(FlowWarp, write_flow_warp);

// The source coordinates of all positions of the top, from -1 to 1. Entries of the map are in the
// second bottom, or in the file.
class AffineSource {
 public:
  explicit AffineSource(LayerExport& layer) : layer_(layer) {
    const SpatialTransformerParameter& p = layer.message().st_param();
    const bool given[] = {p.has_theta_1_1(), p.has_theta_1_2(), p.has_theta_1_3(),
                          p.has_theta_2_1(), p.has_theta_2_2(), p.has_theta_2_3()};
    const double numbers[] = {p.theta_1_1(), p.theta_1_2(), p.theta_1_3(),
                              p.theta_2_1(), p.theta_2_2(), p.theta_2_3()};
    int64_t columns = 0;
    for (int k = 0; k < 6; ++k) {
      column_[k] = given[k] ? -1 : columns++;
      number_[k] = static_cast<float>(numbers[k]);
    }
    maps_ = layer.reshape(layer.bottom(1), {-1, columns});
    const Shape& y = layer.top_shape();
    for (int64_t i = 0; i < y.count(2); ++i) {
      factors_[0].push_back(static_cast<float>(2 * (i / y[3])) / static_cast<float>(y[2]) - 1);
      factors_[1].push_back(static_cast<float>(2 * (i % y[3])) / static_cast<float>(y[3]) - 1);
      factors_[2].push_back(1);
    }
  }

  // row: 0 for the row coordinate, 1 for the column coordinate.
  std::string coordinate(int row) {
    const auto count = static_cast<int64_t>(factors_[0].size());
    std::vector<float> fixed(count);
    // Begins with zeros for each image: the file may give all entries of this coordinate.
    std::string sum = layer_.node("Mul", {layer_.slice(maps_, 1, 0, 1), layer_.scalar(0)});
    for (int k = 0; k < 3; ++k) {
      const int entry = 3 * row + k;
      if (column_[entry] < 0) {
        for (int64_t i = 0; i < count; ++i) fixed[i] += number_[entry] * factors_[k][i];
        continue;
      }
      const std::string given = layer_.slice(maps_, 1, column_[entry], column_[entry] + 1);
      const std::string part =
          k == 2 ? given : layer_.node("Mul", {given, layer_.floats({1, count}, factors_[k])});
      sum = layer_.node("Add", {sum, part});
    }
    return layer_.unsqueeze(layer_.node("Add", {sum, layer_.floats({1, count}, fixed)}), {1});
  }

 private:
  LayerExport& layer_;
  int64_t column_[6];
  float number_[6];
  std::string maps_;
  std::vector<float> factors_[3];
};

void write_spatial_transformer(LayerExport& layer) {
  const Shape &x = layer.bottom_shape(), &y = layer.top_shape();
  AffineSource source(layer);
  std::string positions =
      layer.node("Concat", {source.coordinate(1), source.coordinate(0)}, {{"axis", int64_t{1}}});
  positions = layer.reshape(positions, {-1, 2, y[2], y[3]});
  positions = layer.node("Add", {positions, layer.scalar(1)});
  const auto columns = static_cast<float>(x[3]), rows = static_cast<float>(x[2]);
  positions = layer.node("Mul", {positions, layer.floats({1, 2, 1, 1}, {columns / 2, rows / 2})});
  layer.write("Identity", {sampled(layer, layer.bottom(), x[2], x[3], positions, false)});
}
EXPORT_LAYER(SpatialTransformer, write_spatial_transformer);

// ONNX's DeformConv also reads within a pixel of the border, outside of it; this layer does not. So
// the columns are sampled, and multiplied by the weights.
void write_deformable_convolution(LayerExport& layer) {
  const ConvolutionParameter& p = layer.message().convolution_param();
  const Shape &x = layer.bottom_shape(), &y = layer.top_shape();
  const SpatialParams spatial = spatial_params(p, x);
  const int64_t sets = p.deformable_group(), groups = p.group();
  const int64_t taps = spatial.kernel[0] * spatial.kernel[1], count = y.count(2);
  std::vector<float> places(2 * taps * count);
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = i / y[3] * spatial.stride[0] - spatial.pad[0] +
                          tap / spatial.kernel[1] * spatial.dilation[0];
      const int64_t column = i % y[3] * spatial.stride[1] - spatial.pad[1] +
                             tap % spatial.kernel[1] * spatial.dilation[1];
      places[tap * count + i] = static_cast<float>(column);
      places[(taps + tap) * count + i] = static_cast<float>(row);
    }
  }
  std::string moves = layer.reshape(layer.bottom(1), {-1, taps, 2, count});
  moves = layer.node("Transpose", {moves}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  moves = layer.node("Gather", {moves, layer.ints({1, 0})}, {{"axis", int64_t{1}}});
  const std::string positions =
      layer.node("Add", {moves, layer.floats({1, 2, taps, count}, places)});
  const std::string image = layer.reshape(layer.bottom(), {-1, x[1] / sets, x[2], x[3]});
  std::string columns = sampled_inside(layer, image, x[2], x[3], positions, 0);
  columns = layer.reshape(columns, {-1, groups, x[1] / groups * taps, count});
  const std::string weights = layer.parameter(0, {groups, y[1] / groups, x[1] / groups * taps});
  const std::string product =
      layer.reshape(layer.node("MatMul", {weights, columns}), {-1, y[1], y[2], y[3]});
  if (layer.parameters() == 1) return layer.write("Identity", {product});
  layer.write("Add", {product, layer.parameter(1, {y[1], 1, 1})});
}
EXPORT_LAYER(DeformableConvolution, write_deformable_convolution);

struct Region {
  int64_t top, bottom, left, right;
};

// This region of an image; zeros where it is outside.
std::string region_of(LayerExport& layer, std::string x, const Shape& shape, const Region& region) {
  const auto beyond = [](int64_t end, int64_t extent) {
    return std::max<int64_t>(0, end - extent);
  };
  const std::vector<int64_t> around = {
      0, 0, beyond(-region.top, 0),          beyond(-region.left, 0),
      0, 0, beyond(region.bottom, shape[2]), beyond(region.right, shape[3])};
  if (*std::max_element(around.begin(), around.end()) > 0) x = layer.pad(x, around, 0);
  const int64_t top = region.top + around[2], left = region.left + around[3];
  const int64_t bottom = region.bottom + around[2], right = region.right + around[3];
  if (top == 0 && left == 0 && bottom == shape[2] + around[2] + around[6] &&
      right == shape[3] + around[3] + around[7])
    return x;
  return layer.node("Slice",
                    {x, layer.ints({top, left}), layer.ints({bottom, right}), layer.ints({2, 3})});
}

// Multiplies the whole images, once for each displacement.
void write_correlation(LayerExport& layer) {
  const CorrelationParameter& p = layer.message().correlation_param();
  const Shape &x = layer.bottom_shape(), &y = layer.top_shape();
  const bool in_rows = layer.type() == "Correlation1D";
  const int64_t kernel = p.kernel_size(), stride = p.stride_1(), step = p.stride_2();
  const int64_t side = p.max_displacement() / step;
  const int direction = p.single_direction();
  const int64_t across = direction == 0 ? 2 * side + 1 : side + 1;
  const int64_t least = step * (direction == 0 ? -side : direction < 0 ? -side - 1 : 0);
  const int64_t left = int64_t{p.max_displacement()} - int64_t{p.pad()};
  const int64_t top = in_rows ? 0 : left;
  const Region patches = {top, top + stride * (y[2] - 1) + kernel, left,
                          left + stride * (y[3] - 1) + kernel};
  const int64_t farthest = least + (across - 1) * step;
  const Region reached = {patches.top + (in_rows ? 0 : least),
                          patches.bottom + (in_rows ? 0 : farthest), patches.left + least,
                          patches.right + farthest};
  const std::string a = region_of(layer, layer.bottom(0), x, patches);
  const std::string b = region_of(layer, layer.bottom(1), x, reached);
  const Shape of_b{x[0], x[1], reached.bottom - reached.top, reached.right - reached.left};
  std::vector<std::string> means;
  for (int64_t d = 0; d < y[1]; ++d) {
    const int64_t down = in_rows ? 0 : d / across * step, right = d % across * step;
    const std::string moved = region_of(
        layer, b, of_b,
        {down, down + patches.bottom - patches.top, right, right + patches.right - patches.left});
    const std::string each = p.correlation_type() == CorrelationParameter::SUBTRACT
                                 ? layer.node("Abs", {layer.node("Sub", {a, moved})})
                                 : layer.node("Mul", {a, moved});
    means.push_back(layer.reduce("ReduceMean", each, {1}, true));
  }
  const std::string all =
      means.size() == 1 ? means[0] : layer.node("Concat", means, {{"axis", int64_t{1}}});
  if (kernel == 1 && stride == 1) return layer.write("Identity", {all});
  layer.write("AveragePool", {all},
              {{"kernel_shape", std::vector<int64_t>{kernel, kernel}},
               {"strides", std::vector<int64_t>{stride, stride}}});
}
EXPORT_LAYER(Correlation, write_correlation);
EXPORT_LAYER(Correlation1D, write_correlation);

}  // namespace
}  // namespace crema
