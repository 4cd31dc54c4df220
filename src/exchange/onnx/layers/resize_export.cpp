// Layers that change the size of images.
#include <cmath>

#include "exchange/onnx/layer_export.h"
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

void write_unpooling(LayerExport& layer) {
  const UnpoolingParameter& p = layer.message().unpooling_param();
  if (p.unpool() == UnpoolingParameter::MAX && layer.bottoms() == 2)
    return write_to_positions(layer);
  layer.refuse("only the MAX with a mask has an operator",
               "write Upsample or a Deconvolution instead");
}
EXPORT_LAYER(Unpooling, write_unpooling);
EXPORT_LAYER(UnPooling, write_unpooling);

}  // namespace
}  // namespace crema
