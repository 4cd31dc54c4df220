// Copies some segments of an arena to the same places of another one, or of another view with the
// same layout.
#pragma once

#include "kernels/optim/update_table.h"

namespace crema {

// Both float or both double; other elements stay.
void copy_segments(Context& context, const ChunkTable& segments, const Tensor& from,
                   const Tensor& to);

}  // namespace crema
