// Hashes of weights that are computed where the weights are, so that ranks can compare theirs
// without copying them to the host.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace crema {

// One hash per tensor, of the bits of its values and of their positions in row-major order. Neither
// the format in memory, nor the device, nor the number of threads matters. Waits for the device.
// Float, double or blocked formats on the CPU; float or double on a GPU.
std::vector<uint64_t> weights_hashes(Context& context, std::span<const Tensor> tensors);

}  // namespace crema
