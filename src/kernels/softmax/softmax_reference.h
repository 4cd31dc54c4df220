// The bodies behind softmax.h and softmax_loss.h that serve every device; softmax.cpp and
// softmax_loss.cpp have the CPU's own loops.
#pragma once

#include "kernels/softmax/softmax_loss.h"

namespace crema {

void softmax_forward_plain(Context& context, const SoftmaxView& view, const Tensor& x,
                           const Tensor& y);
void softmax_backward_plain(Context& context, const SoftmaxView& view, const Tensor& y,
                            const Tensor& dy, const Tensor& dx);

// saved.places and probability, on the CPU.
void softmax_loss_places_plain(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                               const Tensor& labels, const SoftmaxLossSaved& saved,
                               const Tensor& probability);
// All of forward in one kernel.
void softmax_loss_forward_gpu(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                              const Tensor& labels, const Tensor& loss,
                              const SoftmaxLossSaved& saved, const Tensor& probability);
void softmax_loss_backward_plain(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                                 const Tensor& labels, const SoftmaxLossSaved& saved,
                                 const Tensor& d_loss, const Tensor& dx);

}  // namespace crema
