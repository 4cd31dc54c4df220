// The implementations of softmax.h and softmax_loss.h. "plain" handles one position at a time. GPUs
// use it too, with a thread, warp or block per position; softmax.cpp and softmax_loss.cpp have the
// CPU's own loops.
#pragma once

#include "kernels/core/kernel_registry.h"
#include "kernels/softmax/softmax_loss.h"

namespace crema {

extern KernelsOf<decltype(softmax_forward)> softmax_forward_kernels;
extern KernelsOf<decltype(softmax_backward)> softmax_backward_kernels;
// For labels, not shares.
extern KernelsOf<decltype(softmax_loss_forward)> softmax_loss_forward_kernels;
extern KernelsOf<decltype(softmax_loss_backward)> softmax_loss_backward_kernels;

// On a CPU: writes saved.positions and probability, one position at a time.
void softmax_loss_positions(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                            const Tensor& labels, const SoftmaxLossSaved& saved,
                            const Tensor& probability);

}  // namespace crema
