// Sort keys: scores with their positions as integers that sort like the scores; of equal scores the
// earlier position has the higher key.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/host_device.h"

namespace crema {

// Higher keys come first; never 0 for positions below 2^32 - 1. A NaN comes first; on the CPU last
// if its sign is set.
CREMA_HD inline uint64_t sort_key(float score, int64_t position) {
  const float value = score + 0.0f;  // -0 equals 0
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits = bits >> 31 ? ~bits : bits | 0x80000000u;
  return static_cast<uint64_t>(bits) << 32 | (0xffffffffu - static_cast<uint32_t>(position));
}

CREMA_HD inline int32_t position_of_key(uint64_t key) {
  return static_cast<int32_t>(0xffffffffu - static_cast<uint32_t>(key));
}

CREMA_HD inline float score_of_key(uint64_t key) {
  const auto high = static_cast<uint32_t>(key >> 32);
  const uint32_t bits = high >> 31 ? high & 0x7fffffffu : ~high;
  float score;
  memcpy(&score, &bits, sizeof score);
  return score;
}

}  // namespace crema
