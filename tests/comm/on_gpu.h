// Values in a GPU's memory that ranks sum, and what their sums must be.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "device/memory.h"

namespace crema::tests {

class OnGpu {
 public:
  OnGpu(Context& context, const std::vector<float>& values)
      : context_(context), buffer_(context, values.size() * sizeof(float)), count_(values.size()) {
    write(values);
  }
  void write(const std::vector<float>& values) const {
    copy_bytes(context_, data(), Device::gpu, values.data(), Device::cpu, buffer_.bytes());
  }
  std::vector<float> read() const {
    std::vector<float> values(count_);
    copy_bytes(context_, values.data(), Device::cpu, buffer_.data(), Device::gpu, buffer_.bytes());
    return values;
  }
  float* data() const { return static_cast<float*>(buffer_.data()); }

 private:
  Context& context_;
  Buffer buffer_;
  size_t count_;
};

// Small integers, of which every sum is exact.
inline std::vector<float> values_of(int rank, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * 7 + rank * 13) % 101);
  return values;
}
inline std::vector<float> sums_of(int ranks, int64_t count, int times = 1) {
  std::vector<float> sums(static_cast<size_t>(count));
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<float> values = values_of(rank, count);
    for (size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
  }
  for (float& sum : sums) sum *= static_cast<float>(std::pow(ranks, times - 1));
  return sums;
}

}  // namespace crema::tests
