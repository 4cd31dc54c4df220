// Tensors of reproducible random numbers, and comparison with values computed in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "base/strings.h"
#include "tensor/tensor.h"

namespace crema {

// N(mean, deviation) in plain order, rounded to float32.
inline std::vector<double> random_values(int64_t count, uint64_t stream, double mean = 0,
                                         double deviation = 1) {
  const Random random{42, stream};
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(mean + deviation * random.normal(i));
  return values;
}

inline Tensor tensor_of(Context& context, const std::vector<double>& values, const Shape& shape,
                        DType dtype = DType::f32, Order order = Order::row_major) {
  const Tensor tensor(context, shape, dtype, {order, nullptr});
  from_doubles(context, values.data(), tensor);
  return tensor;
}

// Multiples of 1/8 from -1 to 1, which are exact in 16 bits.
inline Tensor tensor_of_eighths(Context& context, const Shape& shape, DType dtype,
                                const Format& format, uint64_t stream) {
  const Random random{1, stream};
  std::vector<double> values(shape.count());
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::round(random.uniform(i) * 16 - 8) / 8;
  const Tensor tensor(context, shape, dtype, format);
  from_doubles(context, values.data(), tensor);
  return tensor;
}

// Within `tolerance` times the largest magnitude.
inline void expect_close(Context& context, const std::vector<double>& want, const Tensor& got,
                         double tolerance, const char* what) {
  const std::vector<double> values = to_doubles(context, got);
  ASSERT_EQ(want.size(), values.size()) << what;
  double largest = 1e-3;
  for (double value : want) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_LE(std::fabs(want[i] - values[i]), tolerance * largest)
        << what << " " << i << ": " << values[i] << " for " << want[i];
  }
}

}  // namespace crema
