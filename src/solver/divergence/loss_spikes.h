// LossSpikes: notices iterations whose loss is far above those before it, such as a mislabeled or damaged
// sample gives.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace crema {

class LossSpikes {
 public:
  // Call for each iteration in turn. The median of the losses before it if this one is a spike: above the
  // median by half of it and by ten times the usual deviation (1.4826 times the median of deviations).
  // Neither the first iterations are, nor those soon after another spike, which may be its effects.
  std::optional<double> look_at(int64_t iteration, double loss);

 private:
  static constexpr size_t kWindow = 100, kLeast = 20;
  static constexpr int64_t kPause = 20;  // iterations without such a loss
  static constexpr int kMost = 100;      // in a run

  std::vector<double> window_;  // a ring of the last losses
  size_t next_ = 0;
  double mean_ = 0;  // that forgets: median and deviations are only computed for what is above it
  std::optional<int64_t> last_;  // iteration with such a loss
  int found_ = 0;
};

}  // namespace crema
