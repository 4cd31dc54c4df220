// Row normalization, each row by itself:
//   y = (x - mean) * inverse * scale + shift    inverse = 1 / sqrt(variance + eps)
// mean and variance are those of a row; scale and shift are learned, or absent (1 and 0).
#pragma once

#include "base/host_device.h"
#include "tensor/tensor.h"

namespace crema {

// The memory layout of the rows: `runs` runs of `run` contiguous elements each, `run_step` apart.
// Row r begins at r / groups * image_step + r % groups * group_step; its scale and shift parameters
// at r % groups * each. There is one parameter per run (each = runs), or one per position in a run
// (each = run).
struct RowNormView {
  int64_t rows = 0, groups = 1, image_step = 0, group_step = 0;
  int64_t runs = 1, run = 0, run_step = 0;
  bool by_run = false;

  // Rows of `length` contiguous elements.
  static RowNormView of_rows(int64_t rows, int64_t length);
  // Groups of the channels of each image (axis 1).
  static RowNormView of_groups(const Shape& shape, const Format& format, int64_t groups);

  CREMA_HD int64_t length() const { return runs * run; }
  CREMA_HD int64_t each() const { return by_run ? runs : run; }
  CREMA_HD int64_t parameters() const { return groups * each(); }
  CREMA_HD int64_t begin(int64_t row) const {
    return row / groups * image_step + row % groups * group_step;
  }
  CREMA_HD int64_t first_parameter(int64_t row) const { return row % groups * each(); }
};

struct RowNorm {
  RowNormView view;
  float eps = 1e-5f;
  Tensor scale, shift;  // empty: 1 and 0
  // One value per row, from forward to backward. Without a mean it is 0, and variance is the sum of
  // squares: rows get length 1.
  Tensor mean, inverse;
  // For MVN: inverse = 1, or 1 / (sqrt(variance) + eps); and backward receives y instead of x,
  // which is sufficient without scale and shift.
  bool centre_only = false, eps_beside_root = false, from_result = false;
};

// Bytes of workspace for backward.
size_t row_norm_workspace(Context& context, const RowNormView& view);

void row_norm_forward(Context& context, const RowNorm& n, const Tensor& x, const Tensor& y);

// Gradients that are not wanted are empty. dx may share the memory of dy.
struct RowNormGradients {
  Tensor dx, d_scale, d_shift;
  bool accumulate_scale = false, accumulate_shift = false;
};
void row_norm_backward(Context& context, const RowNorm& n, const Tensor& x, const Tensor& dy,
                       const RowNormGradients& gradients, const Tensor& workspace);

#ifdef CREMA_CUDA
void row_norm_forward_gpu(Context& context, const RowNorm& n, const Tensor& x, const Tensor& y);
void row_norm_backward_gpu(Context& context, const RowNorm& n, const Tensor& x, const Tensor& dy,
                           const RowNormGradients& gradients);
#endif

}  // namespace crema
