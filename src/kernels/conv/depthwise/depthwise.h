// Depthwise convolution of channels-last images: each channel has its own kernel, so a pass does
// little more than read x and write y. The weights (C, 1, kernel...) store each channel's taps
// contiguously in every format.
#pragma once

#include <string>

#include "kernels/conv/conv_bodies.h"

namespace crema {

#ifdef CREMA_CUDA
// For a case that make_conv_depthwise has found to be depthwise; null with the reason for kernels,
// strides and channels that it does not support.
std::unique_ptr<LinearKernel> make_depthwise_gpu(Context& context, const ConvCase& c,
                                                 std::string& reason);
// Likewise, on tensor cores: 16 bits, a multiple of 8 channels.
std::unique_ptr<LinearKernel> make_depthwise_tensor_gpu(Context& context, const ConvCase& c,
                                                        std::string& reason);
#endif

}  // namespace crema
