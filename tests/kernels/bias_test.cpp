// Bias, ReLU and their gradients against loops written out here.
#include "kernels/pointwise/bias.h"

#include <gtest/gtest.h>

#include "tensor/tensor.h"

namespace crema {
namespace bias_test {

struct Extents {
  int64_t outer, channels, inner;
};
// The last two have more rows than the blocks of a GPU take at once; {0, 10, 1} is an empty batch,
// whose sums are 0.
const std::vector<Extents> kExtents = {{1, 1, 1},   {64, 10, 1},    {300, 65, 1},
                                       {4, 7, 33},  {0, 10, 1},     {2, 3, 5000},
                                       {1, 500, 1}, {30000, 24, 1}, {2500, 264, 1}};

std::vector<double> noise(int64_t count, uint64_t stream) {
  const Random random{1, stream};
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = random.normal(i);
  return values;
}

template <typename T>
void check(Device device) {
  Context context(device);
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;
  const auto upload = [&](const std::vector<double>& values) {
    const Tensor tensor(context, {static_cast<int64_t>(values.size())}, dtype_of<T>::value);
    from_doubles(context, values.data(), tensor);
    return tensor;
  };
  for (const auto& [outer, channels, inner] : kExtents) {
    const int64_t count = outer * channels * inner;
    const std::vector<double> y = noise(count, 1), b = noise(channels, 2), dy = noise(count, 3),
                              db = noise(channels, 4);
    for (const Relu relu : {Relu{}, Relu{true, 0}, Relu{true, 0.25f}}) {
      const Tensor out = upload(y), gradient = upload(dy);
      add_bias<T>(context, outer, channels, inner, upload(b).template data<T>(), relu,
                  out.data<T>());
      const std::vector<double> got = to_doubles(context, out);
      relu_gradient<T>(context, count, out.data<T>(), {relu.slope}, gradient.data<T>());
      const std::vector<double> masked = to_doubles(context, gradient);
      for (int64_t i = 0; i < count; ++i) {
        const double sum = y[i] + b[i / inner % channels];
        ASSERT_NEAR(got[i], sum > 0 || !relu.on ? sum : relu.slope * sum, tolerance);
        ASSERT_NEAR(masked[i], got[i] > 0 ? dy[i] : relu.slope * dy[i], tolerance);
      }
    }
    for (const bool accumulate : {false, true}) {
      const Tensor sums = upload(db);
      bias_gradient<T>(context, outer, channels, inner, upload(dy).template data<T>(),
                       sums.data<T>(), accumulate);
      const std::vector<double> got = to_doubles(context, sums);
      for (int64_t c = 0; c < channels; ++c) {
        double sum = accumulate ? db[c] : 0;
        for (int64_t i = 0; i < outer * inner; ++i)
          sum += dy[(i / inner * channels + c) * inner + i % inner];
        ASSERT_NEAR(got[c], sum, tolerance * (1 + std::abs(sum)));
      }
      const Tensor sign = upload(y), masked = upload(dy), masked_sums = upload(db);
      relu_and_bias_gradient<T>(context, outer, channels, inner, sign.data<T>(), {0.25f, 1.5f},
                                masked.data<T>(), masked_sums.data<T>(), accumulate);
      const std::vector<double> after = to_doubles(context, masked),
                                both = to_doubles(context, masked_sums);
      for (int64_t c = 0; c < channels; ++c) {
        double sum = accumulate ? db[c] : 0, magnitude = 1;
        for (int64_t i = 0; i < outer * inner; ++i) {
          const int64_t at = (i / inner * channels + c) * inner + i % inner;
          const double want = (y[at] > 0 ? 1.5 : 0.25) * dy[at];
          ASSERT_NEAR(after[at], want, tolerance);
          sum += want;
          magnitude = std::max(magnitude, std::abs(sum));
        }
        ASSERT_NEAR(both[c], sum, tolerance * 2 * magnitude);
      }
    }
  }
}

TEST(Bias, OnTheCpu) {
  check<float>(Device::cpu);
  check<double>(Device::cpu);
}

TEST(Bias, OnTheGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  check<float>(Device::gpu);
  check<double>(Device::gpu);
}

}  // namespace bias_test
}  // namespace crema
