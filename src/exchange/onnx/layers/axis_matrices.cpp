#include "exchange/onnx/layers/axis_matrices.h"

#include <cmath>

namespace crema {

std::vector<float> unit_rows(std::vector<float> weights, int64_t rows) {
  const int64_t columns = static_cast<int64_t>(weights.size()) / rows;
  for (int64_t row = 0; row < rows; ++row) {
    float* const values = weights.data() + row * columns;
    double sum = 0;
    for (int64_t k = 0; k < columns; ++k) sum += static_cast<double>(values[k]) * values[k];
    const double norm = std::sqrt(sum + 1e-6);
    for (int64_t k = 0; k < columns; ++k) values[k] = static_cast<float>(values[k] / norm);
  }
  return weights;
}

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
