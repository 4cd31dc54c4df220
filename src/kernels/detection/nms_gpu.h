// The GPU's part of kernels/detection/nms.h; in CUDA builds only.
#pragma once

#include "kernels/detection/nms.h"

namespace crema {

size_t best_boxes_gpu_workspace(const BoxLists& lists);
BestBoxes best_boxes_gpu(Context& context, const BoxLists& lists, void* workspace);

}  // namespace crema
