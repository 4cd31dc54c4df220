// Small steps of a training iteration that run on the device, so that a CUDA graph can replay them.
#pragma once

#include "kernels/optim/update.h"

namespace crema {

// losses[updates % their number] = share * (sum of value), or += when `add`. value: float or
// double. A loss that is not finite stops all updates, or this one, if the limits say so.
void note_loss(Context& context, const Tensor& value, double share, bool add,
               const LiveUpdate& live, const Tensor& losses);
// seed[i] = weight * loss scale. Float or double.
void seed_loss(Context& context, double weight, const DeviceUpdateState* state, const Tensor& seed);
// values[i] *= factor. Float or double.
void multiply(Context& context, const Tensor& values, double factor);
// A loss that is the mean over what several ranks count: divides it by the count of all ranks, at
// least 1, and not by its divisor. of: its divisor, which becomes that, and its own count. `all`: one
// value. Float or double.
void divide_by_all(Context& context, const Tensor& all, const Tensor& of, const Tensor& loss);
// ++*pass.
void next_pass(Context& context, uint64_t* pass);

}  // namespace crema
