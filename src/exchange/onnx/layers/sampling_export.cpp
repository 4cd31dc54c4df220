#include "exchange/onnx/layers/sampling_export.h"

namespace crema {

std::string sampled(LayerExport& layer, const std::string& x, int64_t height, int64_t width,
                    const std::string& positions, bool repeats) {
  if (layer.opset() < 16) {
    layer.refuse("values between pixels are an operator from opset 16 on (GridSample)",
                 "export with -opset 16");
  }
  const auto last_column = static_cast<float>(width), last_row = static_cast<float>(height);
  const std::vector<int64_t> of_axes = {1, 2, 1, 1};
  // Nothing is read so far outside, and the limits keep numbers within the range of an index.
  std::string at = layer.node("Max", {positions, layer.scalar(-2)});
  at = layer.node("Min", {at, layer.floats(of_axes, {last_column + 1, last_row + 1})});
  at = layer.node("Add",
                  {layer.node("Mul", {at, layer.floats(of_axes, {2 / last_column, 2 / last_row})}),
                   layer.floats(of_axes, {1 / last_column - 1, 1 / last_row - 1})});
  at = layer.node("Transpose", {at}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  return layer.node("GridSample", {x, at},
                    {{"mode", std::string(layer.opset() < 20 ? "bilinear" : "linear")},
                     {"padding_mode", std::string(repeats ? "border" : "zeros")},
                     {"align_corners", int64_t{0}}});
}

}  // namespace crema
