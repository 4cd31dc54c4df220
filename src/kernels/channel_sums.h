// The GPU's body of channel_sums(); kernels/channel.h is the interface.
#pragma once

#include "kernels/channel.h"

namespace crema {

void channel_sums_gpu(Context& context, const ChannelView& view, const ChannelGradient& gradient,
                      const Tensor& masked, double* sums, void* scratch);

}  // namespace crema
