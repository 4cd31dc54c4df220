// Reference implementations (kernels/core/implementation.h) of softmax.h and softmax_loss.h: one
// position at a time. GPUs use them too, with a thread, warp or block per position; softmax.cpp and
// softmax_loss.cpp have the CPU's own loops.
#pragma once

#include "kernels/softmax/softmax_loss.h"

namespace crema {

bool softmax_forward_reference(Context& context, const SoftmaxView& view, const Tensor& x,
                               const Tensor& y);
bool softmax_backward_reference(Context& context, const SoftmaxView& view, const Tensor& y,
                                const Tensor& dy, const Tensor& dx);

// Writes saved.positions and probability, on the CPU.
void softmax_loss_positions_reference(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                                      const Tensor& labels, const SoftmaxLossSaved& saved,
                                      const Tensor& probability);
// The whole forward pass in one kernel.
void softmax_loss_forward_gpu(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                              const Tensor& labels, const Tensor& loss,
                              const SoftmaxLossSaved& saved, const Tensor& probability);
bool softmax_loss_backward_reference(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                                     const Tensor& labels, const SoftmaxLossSaved& saved,
                                     const Tensor& d_loss, const Tensor& dx);

}  // namespace crema
