// Batch normalization's body for channels-last tensors on a GPU; batch_norm.cu serves all others.
#pragma once

#include "kernels/batch_norm.h"

namespace crema {

bool batch_norm_serves_gpu(Context& context, const BatchNormCase& c, DType dtype);
void batch_norm_forward_gpu(Context& context, const BatchNormCase& c,
                            const BatchNormParameters& parameters, const Tensor& x,
                            const Tensor& added, const Tensor& y, const BatchNormSaved& saved,
                            const Tensor& workspace);
void batch_norm_recompute_gpu(Context& context, const BatchNormCase& c,
                              const BatchNormParameters& parameters, const Tensor& x,
                              const Tensor& added, const Tensor& y, const BatchNormSaved& saved,
                              const Tensor& workspace);
void batch_norm_backward_gpu(Context& context, const BatchNormCase& c,
                             const BatchNormParameters& parameters, const Tensor& x,
                             const Tensor& y, const Tensor& dy, const Tensor& more_dy,
                             const BatchNormSaved& saved, const BatchNormGradients& gradients,
                             const Tensor& workspace);

}  // namespace crema
