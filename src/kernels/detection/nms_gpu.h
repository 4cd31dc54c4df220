// The GPU implementation of kernels/detection/nms.h; in CUDA builds only.
#pragma once

#include "kernels/detection/nms.h"

namespace crema {

size_t nms_gpu_workspace(const NmsInput& input);
NmsResult nms_gpu(Context& context, const NmsInput& input, void* workspace);

}  // namespace crema
