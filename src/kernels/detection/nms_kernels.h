// The implementations of kernels/detection/nms.h.
#pragma once

#include "kernels/core/kernel_registry.h"
#include "kernels/detection/nms.h"

namespace crema {

// The arguments are those of nms(), and the result.
extern KernelFunctions<const NmsInput&, void*, NmsResult&> nms_kernels;
// Sets `bytes` to those of the workspace.
extern KernelFunctions<const NmsInput&, size_t&> nms_workspace_kernels;

}  // namespace crema
