// The implementations of batch normalization, and the update of stored statistics that they share.
#pragma once

#include <cmath>

#include "base/host_device.h"
#include "kernels/core/kernel_registry.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/norm/batch_norm_arithmetic.h"

namespace crema {

template <typename T>
struct StoredStatistics {
  T *mean, *variance, *factor;  // as BatchNormParameters
  T eps, fraction, share;
  bool unbiased;

  StoredStatistics() = default;
  StoredStatistics(const BatchNormCase& c, const BatchNormParameters& p)
      : mean(p.stored_mean.data<T>()),
        variance(p.stored_variance.data<T>()),
        factor(p.stored_factor.data<T>()),
        eps(c.eps),
        fraction(c.fraction),
        share(c.share),
        unbiased(c.unbiased) {}

  // each: values per channel. batch_variance is biased.
  CREMA_HD void add(int64_t c, T batch_mean, double batch_variance, double each) const {
    if (!mean) return;
    if (unbiased && each > 1) batch_variance *= each / (each - 1);
    mean[c] = share * batch_mean + fraction * mean[c];
    variance[c] = share * static_cast<T>(batch_variance) + fraction * variance[c];
    if (factor && c == 0) factor[0] = share + fraction * factor[0];
  }
  CREMA_HD void take(int64_t c, T* mean_out, T* inverse_out) const {
    if (!mean) {
      mean_out[c] = 0;
      inverse_out[c] = 1;
      return;
    }
    const T by = !factor ? T(1) : factor[0] == 0 ? T(0) : 1 / factor[0];
    mean_out[c] = by * mean[c];
    inverse_out[c] = 1 / static_cast<T>(sqrt(by * variance[c] + eps));
  }
};

template <typename T>
batch_norm::LearnedGradients<T> learned_gradients(const BatchNormGradients& gradients) {
  return {gradients.d_scale.data<T>(), gradients.d_shift.data<T>(), gradients.accumulate_scale,
          gradients.accumulate_shift};
}

// Rows of channels: what "channels_last" takes on a GPU, together with a single channel.
bool batch_norm_in_rows(const BatchNormCase& c, DType dtype);

// For tensors that are not empty. "plain" supports all but gelu, more_dy and 16 bits.
extern KernelsOf<decltype(batch_norm_forward)> batch_norm_forward_kernels;
extern KernelsOf<decltype(batch_norm_affine)> batch_norm_affine_kernels;
extern KernelsOf<decltype(batch_norm_recompute)> batch_norm_recompute_kernels;
extern KernelsOf<decltype(batch_norm_backward)> batch_norm_backward_kernels;

// In CUDA builds only, for kernels that fuse batch normalization with others.
// Writes mean and inverse to `saved`: those of x, from its sums unless these are empty, or the
// stored ones.
void batch_norm_statistics_gpu(Context& context, const BatchNormCase& c,
                               const BatchNormParameters& parameters, const Tensor& x,
                               const Tensor& sums, const BatchNormSaved& saved,
                               const Tensor& workspace);
// The first half of backward, with a ReLU and nothing added, for a dy that is 0 except at some
// positions: x and dy contain only those, row by row. Writes the gradients of scale and shift and,
// into the workspace, x_factor and constant of dx = factor * g + (x - mean) * x_factor + constant,
// where g is dy + more_dy through the ReLU. With more_dy, g is written to dy.
void batch_norm_sums_gpu(Context& context, const BatchNormCase& c,
                         const BatchNormParameters& parameters, const Tensor& x, const Tensor& dy,
                         const Tensor& more_dy, const BatchNormSaved& saved,
                         const BatchNormGradients& gradients, const Tensor& workspace);

}  // namespace crema
