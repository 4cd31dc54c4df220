// Softmax cross-entropy with a share of each class in place of a label (mixup, cutmix): the loss and
// the gradient of kernels/softmax/softmax_loss.h for label k, times the share of class k, summed
// over k.
//   t[k] = (1 - smoothing) * q[k] * w[k] + smoothing / classes * sum(q * w)
//   loss = sum over positions of v[position] * sum of t[k] * min(-log(p[k]), 87.3) / normalizer
//   dx   = d_loss * v[position] * (p * sum(q * w) - t) / normalizer          p = softmax(x)
// Shares need not add up to 1. No position is ignored.
#pragma once

#include "kernels/softmax/softmax_loss.h"

namespace crema {

// saved.positions has a fourth row here: sum(q * w). The first two rows are there already; the loss
// of each position, the normalizer and the loss are written. A share that is not from 0 to 1 is an
// Error on the CPU and noted on a GPU, with its index in the blob as its position.
void softmax_shares_loss_forward(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                                 const Tensor& shares, const Tensor& loss,
                                 const SoftmaxLossSaved& saved);
void softmax_shares_loss_backward(Context& context, const SoftmaxLossCase& c, const Tensor& x,
                                  const Tensor& shares, const SoftmaxLossSaved& saved,
                                  const Tensor& d_loss, const Tensor& dx);

// The share is that of one class in a position of an image, all counted from 0. when: "" or " of
// forward pass 7".
[[noreturn]] void fail_for_share(const SoftmaxLossCase& c, int64_t at, double share,
                                 const std::string& when = "");

}  // namespace crema
