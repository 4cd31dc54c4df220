#include "exchange/weight_matrices.h"

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

}  // namespace crema
