// What joined layers know of a Pooling among their members.
#pragma once

#include <optional>

#include "kernels/pool/pool.h"
#include "layers/layer.h"

namespace crema {

// Of a Pooling that is set up. None where it is not kernels/pool/pool.h that serves it.
std::optional<PoolWindow> pool_window(const Layer& pooling, const Shape& bottom);

}  // namespace crema
