// Ranks: scores as integers that sort like the scores; of equal scores the earlier position ranks
// higher.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/host_device.h"

namespace crema {

// Higher ranks come first; never 0, except for one NaN.
CREMA_HD inline uint64_t rank_of(float score, int64_t position) {
  const float value = score + 0.0f;  // -0 equals 0
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits = bits >> 31 ? ~bits : bits | 0x80000000u;
  return static_cast<uint64_t>(bits) << 32 | (0xffffffffu - static_cast<uint32_t>(position));
}

CREMA_HD inline int32_t ranked_position(uint64_t rank) {
  return static_cast<int32_t>(0xffffffffu - static_cast<uint32_t>(rank));
}

CREMA_HD inline float ranked_score(uint64_t rank) {
  const auto high = static_cast<uint32_t>(rank >> 32);
  const uint32_t bits = high >> 31 ? high & 0x7fffffffu : ~high;
  float score;
  memcpy(&score, &bits, sizeof score);
  return score;
}

}  // namespace crema
