// reorder between all formats, read back through Format::offset.
#include "kernels/move/reorder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace crema {
namespace reorder_test {

// Weights in blocks of 16 outputs and 8 inputs, as a library might use them.
Format blocked(const Shape& shape) {
  Blocking blocking;
  const int64_t outputs = (shape[0] + 15) / 16, inputs = (shape[1] + 7) / 8;
  blocking.padded_dims = shape.dims();
  blocking.padded_dims[0] = outputs * 16;
  blocking.padded_dims[1] = inputs * 8;
  blocking.inner_sizes = {8, 16};
  blocking.inner_axes = {1, 0};
  blocking.strides.assign(shape.axes(), 0);
  int64_t stride = 128;
  for (int axis = shape.axes() - 1; axis >= 2; --axis) {
    blocking.strides[axis] = stride;
    stride *= shape[axis];
  }
  blocking.strides[1] = stride;
  blocking.strides[0] = stride * inputs;
  return {Order::blocked, std::make_shared<const Blocking>(blocking)};
}

void check(Device device, const Shape& shape, DType dtype) {
  Context context(device);
  std::vector<double> values(shape.count());
  std::iota(values.begin(), values.end(), 1);
  if (dtype == DType::u8 || dtype == DType::f16) {  // what they hold exactly
    for (double& value : values) value = std::fmod(value, 251);
  }
  std::vector<Format> formats = {Format::row_major(), Format::channels_last()};
  if (shape.axes() >= 3) formats.push_back(blocked(shape));
  if (shape.axes() == 2 && shape[1] % 6 == 0) {  // columns in the order of channels-last images
    formats.push_back({Order::channels_last, nullptr, 0, 6});
    formats.push_back({Order::channels_last, nullptr, 0, shape[1]});
  }
  for (const Format& source : formats) {
    for (const Format& destination : formats) {
      const Tensor from(context, shape, dtype, source), to(context, shape, dtype, destination);
      from_doubles(context, values.data(), from);
      // Old content, in the padding too, must be gone afterwards.
      const std::vector<char> dirt(to.bytes(), 7);
      copy_bytes(context, to.raw(), device, dirt.data(), Device::cpu, to.bytes());
      reorder(context, from, to);
      EXPECT_EQ(to_doubles(context, to), values)
          << shape.brief() << " " << name_of(dtype) << " from order "
          << static_cast<int>(source.order) << " to " << static_cast<int>(destination.order)
          << " on the " << name_of(device);
      if (to.elements() == to.count() || same_layout(source, destination, shape)) continue;
      const Tensor all = Tensor(to.memory(), 0, {to.elements()}, dtype);
      const std::vector<double> content = to_doubles(context, all);
      EXPECT_EQ(std::accumulate(content.begin(), content.end(), 0.0),
                std::accumulate(values.begin(), values.end(), 0.0))
          << "the padding of " << shape.brief() << " is not zero";
    }
  }
}

void check_device(Device device) {
  const std::vector<Shape> shapes = {
      {5},          {3, 4},          {2, 3, 7},          {2, 20, 9, 11},  {1, 1, 4, 5},
      {4, 3, 1, 1}, {2, 130, 5, 17}, {3, 3, 40, 41},     {2, 5, 3, 4, 6}, {50, 20, 5, 5},
      {0, 3, 2, 2}, {32, 16, 3, 3},  {2, 3, 2, 3, 2, 2}, {7, 24},         {2, 68, 12, 11}};
  for (const Shape& shape : shapes) {
    for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::u8})
      check(device, shape, dtype);
    if (device == Device::gpu) check(device, shape, DType::f16);
  }
}

TEST(Reorder, AnyFormatOnTheCpu) { check_device(Device::cpu); }

TEST(Reorder, HalvesInBlocksOnTheCpu) {
  Context context(Device::cpu);
  const Shape shape{20, 10, 3};
  std::vector<double> values(shape.count());
  std::iota(values.begin(), values.end(), 1);
  const Tensor plain(context, shape, DType::f16),
      blocks(context, shape, DType::f16, blocked(shape)), back(context, shape, DType::f16);
  from_doubles(context, values.data(), plain);
  reorder(context, plain, blocks);
  reorder(context, blocks, back);
  EXPECT_EQ(to_doubles(context, back), values);
}

TEST(Reorder, AnyFormatOnTheGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  check_device(Device::gpu);
}

// Images for convolutions in 16 bits: 4 or 8 channels in memory, with zeros after their own.
TEST(Reorder, ImagesIntoPaddedPixelsOnTheGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  for (const int64_t channels : {1, 3, 4, 7, 8}) {
    for (const int64_t padded : {4, 8}) {
      if (channels > padded) continue;
      for (const DType dtype : {DType::f16, DType::bf16}) {
        const Shape shape{3, channels, 5, 11};
        std::vector<double> values(shape.count());
        for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 251) + 1;
        const Tensor from(context, shape),
            to(context, shape, dtype, {Order::channels_last, nullptr, padded});
        from_doubles(context, values.data(), from);
        const std::vector<char> dirt(to.bytes(), 7);
        copy_bytes(context, to.raw(), Device::gpu, dirt.data(), Device::cpu, to.bytes());
        reorder(context, from, to);
        EXPECT_EQ(to_doubles(context, to), values) << channels << " of " << padded;
        const Tensor all = Tensor(to.memory(), 0, {to.elements()}, dtype);
        const std::vector<double> content = to_doubles(context, all);
        EXPECT_EQ(std::accumulate(content.begin(), content.end(), 0.0),
                  std::accumulate(values.begin(), values.end(), 0.0))
            << "the padding of " << channels << " in " << padded << " is not zero";
      }
    }
  }
}

}  // namespace reorder_test
}  // namespace crema
