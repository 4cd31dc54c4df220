// Rng: the random numbers of one sample, in sequence.
#pragma once

#include "base/random.h"

namespace crema {

class Rng {
 public:
  explicit Rng(Random random) : random_(random) {}

  // In [minimum, maximum).
  float between(float minimum, float maximum) {
    return minimum + (maximum - minimum) * random_.uniform(next_++);
  }
  bool chance(float probability) { return random_.uniform(next_++) < probability; }
  // In [0, choices).
  int64_t pick(int64_t choices) {
    return static_cast<int64_t>(
        (static_cast<uint64_t>(random_.word(next_++)) * static_cast<uint64_t>(choices)) >> 32);
  }

 private:
  Random random_;
  uint64_t next_ = 0;
};

}  // namespace crema
