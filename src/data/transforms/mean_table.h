// MeanTable: the value of each byte after subtracting the mean of its channel.
#pragma once

#include <array>
#include <cstdint>

namespace crema {

class MeanTable {
 public:
  // `mean`: of each channel, in the order of the image.
  explicit MeanTable(const std::array<double, 3>& mean) {
    for (size_t c = 0; c < mean.size(); ++c) {
      for (size_t byte = 0; byte < kBytes; ++byte)
        values_[c][byte] = static_cast<float>(static_cast<double>(byte) - mean[c]);
    }
  }
  float operator()(int64_t channel, uint8_t byte) const { return values_[channel][byte]; }

 private:
  static constexpr size_t kBytes = 256;
  std::array<std::array<float, kBytes>, 3> values_;
};

}  // namespace crema
