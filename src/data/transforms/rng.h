// The random numbers of one sample: Draw, those that every sample has, and Rng, as many as needed.
#pragma once

#include "base/random.h"

namespace crema {

struct Draw {
  Draw() = default;
  CREMA_HD Draw(const Random::Four& words, uint32_t alternating = 0)  // NOLINT: words are a draw
      : words(words), alternating(alternating) {}
  // Record `index` in an epoch, whose own random numbers are `of_epoch`; `all` are those of all.
  CREMA_HD Draw(const Random& of_epoch, const Random& all, uint64_t index, int64_t epoch)
      : words(of_epoch.four(index)), alternating(all.word(index) ^ static_cast<uint32_t>(epoch)) {}

  Random::Four words = {};
  uint32_t alternating = 0;  // its lowest bit changes from epoch to epoch
};

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
  // A separate stream, for a number per pixel.
  Random branch() { return {random_.seed, mix(random_.stream, ~next_++)}; }

 private:
  Random random_;
  uint64_t next_ = 0;
};

}  // namespace crema
