// The transforms of Winograd's minimal filtering F(4x4, 3x3), of Lavin and Gray, "Fast algorithms for
// convolutional neural networks", 2015: 4 x 4 results of a 3 x 3 convolution from 36 products
// instead of 144. Value: a number, or a vector of the numbers of several channels.
#pragma once

#include <array>

namespace crema::winograd {

constexpr int kOutput = 4, kInput = 6, kPoints = kInput * kInput;

template <typename Value>
std::array<Value, 6> of_input(const std::array<Value, 6>& d) {
  const Value even = d[4] - 4 * d[2], odd = d[3] - 4 * d[1], near = d[4] - d[2],
              far = 2 * (d[3] - d[1]);
  return {4 * d[0] - 5 * d[2] + d[4], even + odd, even - odd, near + far, near - far,
          4 * d[1] - 5 * d[3] + d[5]};
}

template <typename Value>
std::array<Value, 6> of_weights(const std::array<Value, 3>& g) {
  const Value ends = g[0] + g[2], far = g[0] / 24 + g[2] / 6;
  return {g[0] / 4, (ends + g[1]) / -6, (ends - g[1]) / -6, far + g[1] / 12, far - g[1] / 12, g[2]};
}

template <typename Value>
std::array<Value, 4> of_products(const std::array<Value, 6>& m) {
  const Value sum = m[1] + m[2], difference = m[1] - m[2], far_sum = m[3] + m[4],
              far_difference = m[3] - m[4];
  return {m[0] + sum + far_sum, difference + 2 * far_difference, sum + 4 * far_sum,
          difference + 8 * far_difference + m[5]};
}

// A transform of both axes: first of the columns.
template <size_t kTo, size_t kFrom, typename Value, typename Transform>
void of_both_axes(const std::array<std::array<Value, kFrom>, kFrom>& from,
                  std::array<std::array<Value, kTo>, kTo>& to, const Transform& transform) {
  std::array<std::array<Value, kFrom>, kTo> columns;
  for (size_t x = 0; x < kFrom; ++x) {
    std::array<Value, kFrom> column;
    for (size_t y = 0; y < kFrom; ++y) column[y] = from[y][x];
    const std::array<Value, kTo> made = transform(column);
    for (size_t y = 0; y < kTo; ++y) columns[y][x] = made[y];
  }
  for (size_t y = 0; y < kTo; ++y) to[y] = transform(columns[y]);
}

}  // namespace crema::winograd
