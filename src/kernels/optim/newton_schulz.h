// The nearest matrix with orthogonal rows or columns, by five steps of a Newton-Schulz iteration of
// fifth order: X = M / |M|, then X <- a X + (b A + c A A) X with A = X X^T. Singular values end
// between about 0.7 and 1.2.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace crema {

class Orthogonalizer {
 public:
  // A blob seen as a matrix: its first axis by all others together.
  struct Matrix {
    int64_t offset = 0;  // in the arena, in elements
    Shape shape;
    Format format;
    int64_t rows() const { return shape[0]; }
    int64_t columns() const { return shape.count() / shape[0]; }
  };
  Orthogonalizer(Context& context, std::vector<Matrix> matrices, DType dtype);

  // Each matrix M of the arena becomes 0.2 * sqrt(max(rows, columns)) * orthogonal(M): so large
  // that its elements are about as large as those of a step of Adam, whatever its shape.
  void run(Context& context, const Tensor& arena) const;

 private:
  template <typename T>
  void run_one(Context& context, const Matrix& matrix) const;

  std::vector<Matrix> matrices_;
  Tensor x_, next_, square_, polynomial_, norm_;
};

}  // namespace crema
