// Dropout of a part of a batch: the mask is that part of the whole batch's mask.
#include "kernels/pointwise/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tensor/tensor.h"

namespace crema::tests {
namespace dropout_test {

constexpr DropoutMask kMask{{{7, 9}}, 1u << 31, 2};

// The remaining ones.
std::vector<float> dropped(Context& context, const Shape& shape, const Format& format,
                           const BatchShare& samples = {}) {
  const Tensor x(context, shape, DType::f32, format);
  from_floats(context, std::vector<float>(static_cast<size_t>(shape.count()), 1).data(), x);
  DropoutMask mask = kMask;
  mask.samples = samples;
  dropout(context, mask, x, x);
  return to_floats(context, x);
}

class DropoutOfParts : public testing::TestWithParam<Device> {};

TEST_P(DropoutOfParts, IsThatOfTheWhole) {
  if (GetParam() == Device::gpu && gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(GetParam());
  // Lists, of less than four channels too, and images.
  for (const Shape& whole :
       {Shape{6, 1}, Shape{6, 2}, Shape{6, 5}, Shape{6, 37}, Shape{6, 64}, Shape{6}, Shape{2, 1},
        Shape{3, 1}, Shape{6, 3, 1, 1}, Shape{6, 7, 3, 2}, Shape{6, 8, 5, 5}, Shape{6, 2, 9}}) {
    SCOPED_TRACE(whole.brief());
    for (const Format& format : {Format::row_major(), Format::channels_last()}) {
      if (whole.axes() < 3 && format.order == Order::channels_last) continue;
      const std::vector<float> expected = dropped(context, whole, format);
      EXPECT_TRUE(whole.count() < 30 || std::count(expected.begin(), expected.end(), 0.f) > 0);
      const int64_t each = whole.count(1);
      for (int64_t first = 0; first < whole[0]; ++first) {
        for (int64_t count = 1; first + count <= whole[0]; ++count) {
          Shape part = whole;
          part[0] = count;
          EXPECT_EQ(dropped(context, part, format, {first, count, whole[0]}),
                    std::vector<float>(expected.begin() + first * each,
                                       expected.begin() + (first + count) * each))
              << "samples from " << first << " to " << first + count;
        }
      }
    }
  }
}

// As a kernel calls it that drops its own results.
TEST(DropoutMask, KeepsWhatDropoutKeeps) {
  Context context(Device::cpu);
  for (const Shape& whole : {Shape{6, 37}, Shape{6, 7, 3, 2}}) {
    for (const BatchShare& samples :
         {BatchShare{}, BatchShare{0, 2, 6}, BatchShare{2, 1, 6}, BatchShare{3, 3, 6}}) {
      Shape shape = whole;
      if (samples.all > 0) shape[0] = samples.count;
      const DropoutLayout layout = DropoutLayout::of(shape, samples);
      const std::vector<float> values = dropped(context, shape, {}, samples);
      const int64_t channels = layout.positions == 1 ? shape.count() : layout.channels;
      size_t i = 0;
      for (int64_t image = 0; image < layout.images; ++image) {
        for (int64_t channel = 0; channel < channels; ++channel) {
          for (int64_t position = 0; position < layout.positions; ++position)
            EXPECT_EQ(kMask.keeps(kMask.random.get(), layout, image, channel, position),
                      values[i++] != 0);
        }
      }
      EXPECT_EQ(i, values.size());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DropoutOfParts, testing::Values(Device::cpu, Device::gpu));

}  // namespace dropout_test
}  // namespace crema::tests
