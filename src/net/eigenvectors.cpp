#include <algorithm>
#include <cmath>
#include <numeric>

#include "net/whitening.h"

namespace crema {
namespace {

// Sets element (p, q) of the matrix to zero by a rotation of rows and columns p and q.
void rotate(std::vector<double>& matrix, std::vector<double>& vectors, int64_t side, int64_t p,
            int64_t q) {
  const double between = matrix[p * side + q];
  if (between == 0) return;
  const double slope = (matrix[q * side + q] - matrix[p * side + p]) / (2 * between);
  const double tangent = (slope < 0 ? -1 : 1) / (std::fabs(slope) + std::sqrt(slope * slope + 1));
  const double c = 1 / std::sqrt(tangent * tangent + 1), s = tangent * c;
  const auto turn = [&](double& a, double& b) {
    const double before = a;
    a = c * before - s * b;
    b = s * before + c * b;
  };
  for (int64_t i = 0; i < side; ++i) turn(matrix[i * side + p], matrix[i * side + q]);
  for (int64_t i = 0; i < side; ++i) turn(matrix[p * side + i], matrix[q * side + i]);
  for (int64_t i = 0; i < side; ++i) turn(vectors[p * side + i], vectors[q * side + i]);
}

// Size of the off-diagonal elements relative to the diagonal.
bool is_diagonal(const std::vector<double>& matrix, int64_t side) {
  double beside = 0, on = 0;
  for (int64_t i = 0; i < side * side; ++i)
    (i % (side + 1) == 0 ? on : beside) += matrix[i] * matrix[i];
  return beside <= 1e-24 * on;
}

}  // namespace

// Jacobi's method (1846): few passes over all pairs, since each converges quadratically at the end.
std::vector<double> eigenvectors(std::vector<double> matrix, int64_t side,
                                 std::vector<double>* values) {
  constexpr int kMostPasses = 50;
  std::vector<double> vectors(matrix.size(), 0);
  for (int64_t i = 0; i < side; ++i) vectors[i * side + i] = 1;
  for (int pass = 0; pass < kMostPasses && !is_diagonal(matrix, side); ++pass) {
    for (int64_t p = 0; p < side; ++p) {
      for (int64_t q = p + 1; q < side; ++q) rotate(matrix, vectors, side, p, q);
    }
  }
  std::vector<int64_t> order(side);
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](int64_t i) { return matrix[i * side + i]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return value(a) > value(b); });
  std::vector<double> sorted;
  values->clear();
  for (const int64_t row : order) {
    values->push_back(value(row));
    const auto begin = vectors.begin() + row * side, end = begin + side;
    const double largest = *std::max_element(
        begin, end, [](double a, double b) { return std::fabs(a) < std::fabs(b); });
    for (auto at = begin; at != end; ++at) sorted.push_back(largest < 0 ? -*at : *at);
  }
  return sorted;
}

}  // namespace crema
