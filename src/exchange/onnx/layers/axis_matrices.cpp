#include "exchange/onnx/layers/axis_matrices.h"

namespace crema {

std::string mixed_axes(LayerExport& layer, const std::string& x, const AxisMatrix& rows,
                       const AxisMatrix& columns) {
  std::vector<float> turned(columns.weights.size());
  for (int64_t i = 0; i < columns.results; ++i)
    for (int64_t j = 0; j < columns.extent; ++j)
      turned[j * columns.results + i] = columns.weights[i * columns.extent + j];
  const std::string down =
      layer.node("MatMul", {layer.floats({rows.results, rows.extent}, rows.weights), x});
  return layer.node("MatMul", {down, layer.floats({columns.extent, columns.results}, turned)});
}

}  // namespace crema
