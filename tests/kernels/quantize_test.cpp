// Rounding to integers.
#include "kernels/pointwise/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/conv/quantized/bytes.h"
#include "kernels/random_values.h"
#include "kernels/reduce/extremes.h"

namespace crema {
namespace quantize_test {

TEST(Quantize, RoundsHalvesToEvenAndClips) {
  struct Row {
    float x, want;
  };
  // Steps of 0.5 from -1 (2 bits with a sign) to 0.5.
  const QuantizedValues values{0.5f, -2, 1};
  for (const Row& row :
       {Row{0.24f, 0}, Row{0.25f, 0}, Row{0.26f, 0.5f}, Row{-0.25f, 0}, Row{-0.75f, -1},
        Row{9, 0.5f}, Row{-9, -1}, Row{std::numeric_limits<float>::infinity(), 0.5f}}) {
    Context context(Device::cpu);
    const Tensor x = tensor_of(context, {row.x}, {1});
    quantize(context, values, x, x);
    EXPECT_EQ(x.data<float>()[0], row.want) << row.x;
  }
  Context context(Device::cpu);
  const Tensor x = tensor_of(context, {std::nan("")}, {1});
  quantize(context, values, x, x);
  EXPECT_TRUE(std::isnan(x.data<float>()[0]));
}

// Rows of one piece, of several, and of pieces that are reduced again.
TEST(Quantize, FindsExtremesOfRows) {
  for (const Device device : {Device::cpu, Device::gpu}) {
    if (device == Device::gpu && gpu_count() == 0) continue;
    Context context(device);
    for (const int64_t size : {0, 1, 64, 65, 5000, 1 << 20}) {
      const int64_t rows = size > 5000 ? 1 : 3;
      std::vector<double> values(rows * size);
      std::vector<float> low(rows), high(rows);
      for (int64_t row = 0; row < rows && size > 0; ++row) {
        const int64_t at = size * (row + 1) / (rows + 1);
        values[row * size + at] = static_cast<double>(row) - 1;  // below zero, zero, above
        values[row * size + size - 1] += 0.5;
        for (int64_t i = 0; i < size; ++i) {
          const auto value = static_cast<float>(values[row * size + i]);
          low[row] = std::min(low[row], value), high[row] = std::max(high[row], value);
        }
      }
      if (size > 1) values[0] = std::nan("");  // is passed over
      const Tensor x = tensor_of(context, values, {rows, size}), lowest(context, {rows}),
                   highest(context, {rows});
      const auto bytes = static_cast<int64_t>(extremes_workspace(rows, size));
      extremes(context, x, rows, lowest, highest, Tensor(context, {bytes}, DType::u8));
      EXPECT_EQ(to_floats(context, lowest), low) << size;
      EXPECT_EQ(to_floats(context, highest), high) << size;
    }
  }
}

TEST(Quantize, RowsHaveStepsOfTheirOwn) {
  Context context(Device::cpu);
  const Tensor w = tensor_of(context, {0.3, 0.8, 0.3, 0.8}, {2, 2}),
               steps = tensor_of(context, {0.5, 0.25}, {2});
  quantize_rows(context, steps, -2, 2, w, w);
  EXPECT_EQ(to_floats(context, w), (std::vector<float>{0.5f, 1, 0.25f, 0.5f}));
}

TEST(Quantize, StepsReachTheLargestOfEachRow) {
  Context context(Device::cpu);
  const int64_t size = 5000;  // in several pieces
  std::vector<double> values(3 * size);
  values[7] = -6, values[size + 4999] = 3, values[size] = -1;
  const Tensor w = tensor_of(context, values, {3, size}), steps(context, {3});
  const auto bytes = static_cast<int64_t>(steps_workspace(w.shape()));
  steps_of_rows(context, w, 3, steps, Tensor(context, {bytes}, DType::u8));
  EXPECT_EQ(to_floats(context, steps), (std::vector<float>{2, 1, 0}));
  quantize_rows(context, steps, -4, 3, w, w);
  EXPECT_EQ(w.data<float>()[7], -6);
  EXPECT_EQ(w.data<float>()[2 * size], 0);
}

// Rows of several pieces and of a length that is no multiple of a vector's, in place and not.
TEST(Quantize, RoundsLongRows) {
  Context context(Device::cpu);
  constexpr int64_t kRowsOf = 3, kSize = 2 * 4096 + 5;
  const Tensor w = tensor_of_eighths(context, {kRowsOf, kSize}, DType::f32, {}, 5),
               steps = tensor_of(context, {0.3, 0, 0.7}, {kRowsOf}), y(context, w.shape());
  std::vector<float> want = to_floats(context, w);
  for (int64_t i = 0; i < w.count(); ++i) {
    const float step = steps.data<float>()[i / kSize];
    if (step > 0) want[i] = step * std::clamp(std::rint(want[i] / step), -2.0f, 1.0f);
  }
  quantize_rows(context, steps, -2, 1, w, y);
  EXPECT_EQ(to_floats(context, y), want);
  quantize_rows(context, steps, -2, 1, w, w);
  EXPECT_EQ(to_floats(context, w), want);
}

TEST(ByteRounding, DividesLikeAFloat) {
  const Random random{4, 9};
  for (int i = 0; i < 200000; ++i) {
    const auto step = static_cast<float>(std::exp(4 * random.normal(2 * i)));
    const ByteRounding rounding({step, -128, 127});
    // Half of them are halves of a step or next to one.
    float x = step * static_cast<float>(40 * random.normal(2 * i + 1));
    if (i % 2 > 0) x = std::nextafter(step * (std::floor(x / step) + 0.5f), i % 4 > 1 ? x : 0.f);
    ASSERT_EQ(rounding.quotient(x), x / step) << x << " / " << step;
  }
  const float infinity = std::numeric_limits<float>::infinity();
  const ByteRounding rounding({0.5f, -128, 127});
  EXPECT_EQ(rounding(infinity), 127);
  EXPECT_EQ(rounding(-infinity), -128);
  EXPECT_EQ(rounding(std::nanf("")), -128);
  EXPECT_EQ(rounding(1e30f), 127);
}

}  // namespace quantize_test
}  // namespace crema
