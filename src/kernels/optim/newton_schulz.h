// Newton-Schulz orthogonalization, as in Muon: the nearest matrix with orthogonal rows or columns,
// by fifth-order steps: X = M / |M|, then X <- a X + (b A + c A A) X with A = X X^T. Singular
// values end between about 0.7 and 1.2 after five steps.
#pragma once

#include <vector>

#include "tensor/precision.h"
#include "tensor/tensor.h"

namespace crema {

// How Muon makes its updates.
struct MuonOptions {
  int steps = 5;
  bool adam_scale = true;        // times 0.2 * sqrt(the larger side): elements as large as Adam's
  bool normalizes = false;       // weights are scaled to the norm sqrt(rows) before an update
  bool nesterov_others = false;  // all other segments: Nesterov's rule, not AdamW's
  Precision precision = Precision::fp32;  // of the products, on a GPU
};

class NewtonSchulz {
 public:
  // A blob viewed as a matrix: its first axis by all others.
  struct Matrix {
    int64_t offset = 0;  // in the arena, in elements
    Shape shape;
    Format format;
    int64_t rows() const { return shape[0]; }
    // With the padding in memory.
    int64_t columns() const {
      const bool blocked = format.order == Order::blocked;
      return (blocked ? shape.count() : format.elements(shape)) / shape[0];
    }
  };
  NewtonSchulz(Context& context, std::vector<Matrix> matrices, const MuonOptions& options,
               DType dtype);

  // Replaces each matrix M of the arena by orthogonal(M), scaled as the options say.
  void run(Context& context, const Tensor& arena) const;

 private:
  template <typename T>
  void run_one(Context& context, const Matrix& matrix, T* arena) const;

  std::vector<Matrix> matrices_;
  MuonOptions options_;
  Tensor x_, next_, plain_, square_, polynomial_, norm_;
};

}  // namespace crema
