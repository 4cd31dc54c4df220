// Depthwise convolution of channels-last images: every channel has a kernel of its own and sees no
// other one, so a pass is little more than reading x and writing y. The weights (C, 1, kernel...)
// are a channel's taps after the other in every format.
#pragma once

#include <string>

#include "kernels/conv/conv_bodies.h"

namespace crema {

#ifdef CREMA_CUDA
// For a case that make_conv_depthwise has found to be depthwise; null with the reason for kernels,
// strides and channels that it has no body for.
std::unique_ptr<WeightedSum> make_depthwise_gpu(Context& context, const ConvCase& c,
                                                std::string& reason);
// Likewise, on tensor cores: 16 bits, channels in eights.
std::unique_ptr<WeightedSum> make_depthwise_tensor_gpu(Context& context, const ConvCase& c,
                                                       std::string& reason);
#endif

}  // namespace crema
