// Row normalization, each row by itself:
//   y = (x - mean) * inverse * scale + shift    inverse = 1 / sqrt(variance + eps)
// mean and variance are those of a row; scale and shift are learned, or absent (1 and 0).
#pragma once

#include <cmath>

#include "base/host_device.h"
#include "kernels/core/kernel_registry.h"
#include "tensor/tensor.h"

namespace crema {

// The memory layout of the rows: `segments` segments of `segment` contiguous elements each,
// `segment_stride` apart. Row r begins at r / groups * image_step + r % groups * group_step; its
// scale and shift parameters at r % groups * each(). There is one parameter per segment, or one per
// position in a segment.
struct RowNormView {
  int64_t rows = 0, groups = 1, image_step = 0, group_step = 0;
  int64_t segments = 1, segment = 0, segment_stride = 0;
  bool parameter_per_segment = false;

  // Rows of `length` contiguous elements.
  static RowNormView of_rows(int64_t rows, int64_t length);
  // Groups of the channels of each image (axis 1).
  static RowNormView of_groups(const Shape& shape, const Format& format, int64_t groups);

  CREMA_HD int64_t length() const { return segments * segment; }
  CREMA_HD int64_t each() const { return parameter_per_segment ? segments : segment; }
  CREMA_HD int64_t parameters() const { return groups * each(); }
  CREMA_HD int64_t begin(int64_t row) const {
    return row / groups * image_step + row % groups * group_step;
  }
  CREMA_HD int64_t first_parameter(int64_t row) const { return row % groups * each(); }
};

struct RowNormCase {
  enum class Divide { sqrt_of_variance_plus_eps, deviation_plus_eps, nothing };

  RowNormView view;
  float eps = 1e-5f;
  // false: the mean is 0, and the variance the sum of squares: rows get length 1.
  bool center = true;
  Divide divide = Divide::sqrt_of_variance_plus_eps;
  bool backward_reads_y = false;  // instead of x, which suffices without scale and shift

  // The divisor of sums over a row.
  CREMA_HD int64_t divisor() const { return center ? view.length() : 1; }
  // variance: not negative.
  template <typename Real>
  CREMA_HD Real inverse_of(Real variance) const {
    switch (divide) {
      case Divide::sqrt_of_variance_plus_eps:
        return 1 / sqrt(variance + static_cast<Real>(eps));
      case Divide::deviation_plus_eps:
        return 1 / (sqrt(variance) + static_cast<Real>(eps));
      case Divide::nothing:
        break;
    }
    return 1;
  }
};

struct RowNormParameters {
  Tensor scale, shift;  // empty: 1 and 0
};

// What forward leaves for backward: one value per row.
struct RowNormSaved {
  Tensor mean;  // empty without `center`
  Tensor inverse;
};

// Bytes of workspace for backward.
size_t row_norm_workspace(Context& context, const RowNormView& view);

void row_norm_forward(Context& context, const RowNormCase& c, const RowNormParameters& parameters,
                      const Tensor& x, const Tensor& y, const RowNormSaved& saved);

// Gradients that are not wanted are empty. dx may share the memory of dy.
struct RowNormGradients {
  Tensor dx, d_scale, d_shift;
  bool accumulate_scale = false, accumulate_shift = false;
};
void row_norm_backward(Context& context, const RowNormCase& c, const RowNormParameters& parameters,
                       const Tensor& x, const Tensor& dy, const RowNormSaved& saved,
                       const RowNormGradients& gradients, const Tensor& workspace);

// Their implementations, for an x that is not empty.
extern KernelsOf<decltype(row_norm_forward)> row_norm_forward_kernels;
extern KernelsOf<decltype(row_norm_backward)> row_norm_backward_kernels;

}  // namespace crema
