// A random permutation of 0 .. count-1 that needs no memory: a pure function of (count, seed,
// stream).
#pragma once

#include <cstdint>

#include "base/random.h"

namespace crema {

// A Feistel network permutes the next power of two; values out of range are permuted again until
// they are in range (fewer than two rounds on average).
class Permutation {
 public:
  CREMA_HD Permutation(int64_t count, Random random)
      : count_(static_cast<uint64_t>(count)), random_(random) {
    int bits = 2;
    while (uint64_t{1} << bits < count_) ++bits;
    low_bits_ = bits / 2;
    low_mask_ = (uint64_t{1} << low_bits_) - 1;
    high_mask_ = (uint64_t{1} << (bits - low_bits_)) - 1;
  }

  CREMA_HD int64_t operator()(int64_t index) const {
    uint64_t value = static_cast<uint64_t>(index);
    do {
      uint64_t low = value & low_mask_, high = value >> low_bits_;
      for (uint64_t round = 0; round < 8; round += 2) {
        low ^= random_.word64((round << 56) | high) & low_mask_;
        high ^= random_.word64(((round + 1) << 56) | low) & high_mask_;
      }
      value = (high << low_bits_) | low;
    } while (value >= count_);
    return static_cast<int64_t>(value);
  }

 private:
  uint64_t count_, low_mask_, high_mask_;
  int low_bits_;
  Random random_;
};

}  // namespace crema
