// Plans of cuDNN for a convolution with batch normalizations around it: with the sums of the
// channels that the one behind begins with, and for an x that the one before, which ends in a ReLU,
// has not written: relu(x * scale + shift) is made as it is read. float16 and channels-last only,
// says cuDNN.
#pragma once

#include <memory>

#include "kernels/conv/conv_cudnn_params.h"

namespace crema {

struct ConvNormPlans {
  // Each is null where cuDNN has none, or where it was measured to take more time than the plan
  // without and the pass over memory that it spares.
  std::unique_ptr<CudnnGraph> sums, affine, affine_weights;

  // forward, weights: the plans without; weights may be null.
  void prepare(const CudnnTarget& target, const ConvCase& c, const ConvNumbers& n,
               CudnnGraph& forward, CudnnGraph* weights);
};

}  // namespace crema
