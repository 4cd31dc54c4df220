// Small steps of a training iteration that run on the device, so that a CUDA graph can repeat it.
#pragma once

#include "kernels/update.h"

namespace crema {

// losses[updates % their number] = share * (sum of value), or += when `add`; and seed[i] = weight *
// loss scale, unless seed is empty. value and seed: float or double.
void note_loss(Context& context, const Tensor& value, double weight, double share, bool add,
               const UpdateNumbers* numbers, const Tensor& losses, const Tensor& seed);
// ++*pass.
void next_pass(Context& context, uint64_t* pass);

}  // namespace crema
