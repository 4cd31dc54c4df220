// The GPU implementation of channel_sums(); kernels/pointwise/channel.h is the interface.
#pragma once

#include "kernels/pointwise/channel.h"

namespace crema {

void channel_sums_gpu(Context& context, const ChannelView& view, const ChannelTerm& of,
                      const Tensor& masked, double* sums, void* scratch);

}  // namespace crema
