// Draws: random numbers of one sample, one after another.
#pragma once

#include "base/random.h"

namespace crema {

class Draws {
 public:
  explicit Draws(Random random) : random_(random) {}

  // In [least, most).
  float between(float least, float most) {
    return least + (most - least) * random_.uniform(next_++);
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
