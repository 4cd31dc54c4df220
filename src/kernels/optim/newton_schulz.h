// Newton-Schulz orthogonalization, as in Muon: the nearest matrix with orthogonal rows or columns,
// by five fifth-order steps: X = M / |M|, then X <- a X + (b A + c A A) X with A = X X^T. Singular
// values end between about 0.7 and 1.2.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace crema {

class NewtonSchulz {
 public:
  // A blob viewed as a matrix: its first axis by all others.
  struct Matrix {
    int64_t offset = 0;  // in the arena, in elements
    Shape shape;
    Format format;
    int64_t rows() const { return shape[0]; }
    int64_t columns() const { return shape.count() / shape[0]; }
  };
  NewtonSchulz(Context& context, std::vector<Matrix> matrices, DType dtype);

  // Replaces each matrix M of the arena by 0.2 * sqrt(max(rows, columns)) * orthogonal(M), so that
  // its elements are about as large as those of an Adam step, whatever its shape.
  void run(Context& context, const Tensor& arena) const;

 private:
  template <typename T>
  void run_one(Context& context, const Matrix& matrix) const;

  std::vector<Matrix> matrices_;
  Tensor x_, next_, square_, polynomial_, norm_;
};

}  // namespace crema
