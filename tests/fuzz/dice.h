// Random choices that depend on nothing but the seed, the target and the number of the input.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"

namespace crema::tests {

class Dice {
 public:
  explicit Dice(Random random) : random_(random) {}

  uint64_t word() { return random_.word64(next_++); }
  // 0 to count - 1; 0 for a count of 0.
  size_t below(size_t count) { return count == 0 ? 0 : static_cast<size_t>(word() % count); }
  bool one_in(size_t count) { return below(count) == 0; }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  Random random_;
  uint64_t next_ = 0;
};

}  // namespace crema::tests
