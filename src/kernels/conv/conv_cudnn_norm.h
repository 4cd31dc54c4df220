// cuDNN's plans for a convolution between batch normalizations: one also computes the per-channel
// sums that the next one starts from; others apply the previous one and its ReLU, relu(x * scale +
// shift), as x is read, so that this is never written. cuDNN supports only float16 and
// channels-last.
#pragma once

#include <memory>

#include "kernels/conv/conv_cudnn_params.h"

namespace crema {

struct ConvNormPlans {
  // Each is null if cuDNN has none, or if it was measured to be slower than the unfused plan plus
  // the pass over memory that it saves.
  std::unique_ptr<CudnnGraph> sums, affine, affine_wgrad;

  // Starts to look for a plan with sums; prepare() builds it, and the others if it is profitable.
  void start(const CudnnTarget& target, const ConvCase& c, const ConvParams& n);
  // fprop, wgrad: the unfused plans; wgrad may be null.
  void prepare(const CudnnTarget& target, const ConvCase& c, const ConvParams& n, CudnnGraph& fprop,
               CudnnGraph* wgrad);
};

}  // namespace crema
