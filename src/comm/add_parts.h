// Adds what copy engines have fetched from other ranks.
#pragma once

#include <cstdint>

#include "device/communicator.h"
#include "device/context.h"

namespace crema {

// sums[i] += parts[i] + parts[stride + i] + ... (`others` of them), i < count, on the context's stream;
// float32, or 16-bit types whose sum is rounded once. Both aligned to 16 bytes, stride a multiple of 8.
void add_parts(Context& context, void* sums, const void* parts, int64_t count, int64_t stride,
               int others, Element element);

}  // namespace crema
