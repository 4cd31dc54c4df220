// Whether cuDNN has engines for a convolution on a card that is not in this machine. A build without
// cuDNN has no such function.
#pragma once

#include <string>

#include "kernels/conv/conv.h"

namespace crema {

struct CudnnSupport {
  bool chosen = false;
  bool fused = false;            // the forward plan includes bias and ReLU
  bool sums = false;             // a forward plan with per-channel sums exists
  bool affine = false;           // one that also applies the preceding normalization to x exists
  bool affine_gradient = false;  // likewise for the gradient of the weights
  std::string reason;            // when the case is not supported
};
// `card`: see CudnnTarget. groups_apart: for the implementation "per_group".
CudnnSupport conv_cudnn_support(const ConvCase& c, const std::string& card,
                                bool groups_apart = false);

}  // namespace crema
