// Gradient centralization: rows that are contiguous, with padding between, and in a library's
// blocks.
#include "kernels/optim/centralize.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support.h"

namespace crema::tests {
namespace centralize_test {

class Centralize : public testing::TestWithParam<std::tuple<DType, Device>> {};

TEST_P(Centralize, EachOutputsGradientsHaveMeanZero) {
  const auto& [dtype, device] = GetParam();
  if (device == Device::gpu && gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(device);
  Format padded = Format::channels_last();
  if (device == Device::gpu && dtype == DType::f32) padded.channels = 4;
  std::vector<Segment> segments = {
      {0, 0, 1, 1, 0, {5, 3}, {}},
      {16, 0, 1, 1, 1, {5}, {}},  // biases stay
      {32, 0, 1, 1, 2, {4, 3, 3, 2}, padded},
      {160, 0, 1, 1, 3, {6, 8, 3, 3}, Format::channels_last()},
      {608, 0, 1, 1, 4, {9, 1}, {}},  // one weight an output stays
      {624, 0, 0, 1, 5, {2, 2}, {}},  // does not learn
      {640, 0, 1, 1, 6, {3, 2000}, {}},
  };
  for (Segment& segment : segments) segment.count = segment.format.elements(segment.shape);
  const Tensor diff(context, Shape{6656}, dtype);
  const Random random{3, 1};
  std::vector<std::vector<double>> before;
  const auto blob = [&](const Segment& segment) {
    return Tensor(diff.memory(), static_cast<size_t>(segment.offset) * size_of(dtype),
                  segment.shape, dtype, segment.format);
  };
  for (const Segment& segment : segments) {
    std::vector<double> values(segment.shape.count());
    for (size_t i = 0; i < values.size(); ++i) values[i] = 1 + random.normal(segment.offset + i);
    from_doubles(context, values.data(), blob(segment));
    before.push_back(values);
  }
  const Centralizer centralizer(context, segments, dtype);
  centralizer.run(context, diff);
  const double tolerance = dtype == DType::f64 ? 1e-12 : 2e-6;
  for (size_t s = 0; s < segments.size(); ++s) {
    const Shape& shape = segments[s].shape;
    const int64_t outputs = shape[0], each = shape.count() / outputs;
    const std::vector<double> after = to_doubles(context, blob(segments[s]));
    for (int64_t o = 0; o < outputs; ++o) {
      double mean = 0;
      for (int64_t i = 0; i < each; ++i)
        mean += before[s][o * each + i] / static_cast<double>(each);
      if (each == 1 || segments[s].lr_mult == 0) mean = 0;
      for (int64_t i = 0; i < each; ++i)
        ASSERT_NEAR(after[o * each + i], before[s][o * each + i] - mean, tolerance)
            << s << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Centralize,
                         testing::Combine(testing::Values(DType::f32, DType::f64),
                                          testing::Values(Device::cpu, Device::gpu)));

}  // namespace centralize_test
}  // namespace crema::tests
