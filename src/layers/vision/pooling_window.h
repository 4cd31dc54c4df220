// What fused layers know of a Pooling among their members.
#pragma once

#include <optional>

#include "kernels/pool/pool.h"
#include "layers/layer.h"

namespace crema {

// The window of a Pooling after setup. None if it is not implemented by kernels/pool/pool.h.
std::optional<PoolWindow> pool_window(const Layer& pooling, const Shape& bottom);

}  // namespace crema
