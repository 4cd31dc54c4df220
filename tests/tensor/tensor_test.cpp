#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "tensor/on.h"

namespace crema {
namespace tensor_test {

std::vector<Device> devices() {
  return gpu_count() > 0 ? std::vector<Device>{Device::cpu, Device::gpu}
                         : std::vector<Device>{Device::cpu};
}

std::vector<double> numbers(int64_t count) {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<double>(i % 200);
  return values;
}

TEST(TensorTest, EmptyMeansNotWanted) {
  EXPECT_FALSE(Tensor());
  Context context(Device::cpu);
  EXPECT_TRUE(Tensor(context, Shape{2}));
  EXPECT_TRUE(Tensor(context, Shape{0, 3}));  // no elements, but a tensor
}

TEST(TensorTest, FreshMemoryIsZero) {
  for (Device device : devices()) {
    Context context(device);
    EXPECT_EQ(to_doubles(context, Tensor(context, Shape{2, 3})), std::vector<double>(6, 0));
  }
}

TEST(TensorTest, ValuesSurviveEveryTypeFormatAndDevice) {
  const Shape shape{2, 3, 4, 5};
  const std::vector<double> values = numbers(shape.count());
  for (Device device : devices()) {
    Context context(device);
    for (DType dtype : {DType::f32, DType::f64, DType::i32, DType::u8}) {
      for (const Format& format : {Format::row_major(), Format::channels_last()}) {
        const Tensor tensor(context, shape, dtype, format);
        EXPECT_EQ(tensor.bytes(), 120 * size_of(dtype));
        from_doubles(context, values.data(), tensor);
        EXPECT_EQ(to_doubles(context, tensor), values)
            << name_of(dtype) << " on " << name_of(device);
      }
    }
  }
}

TEST(TensorTest, PaddingIsWrittenAsZero) {
  Context context(Device::cpu);
  Blocking blocking{{4}, {4}, {4}, {0}};
  const Tensor tensor(context, Shape{3}, DType::f32,
                      {Order::blocked, std::make_shared<const Blocking>(blocking)});
  EXPECT_EQ(tensor.count(), 3);
  EXPECT_EQ(tensor.elements(), 4);
  tensor.data<float>()[3] = 7;
  const float values[] = {1, 2, 3};
  from_floats(context, values, tensor);
  EXPECT_EQ(tensor.data<float>()[3], 0);
  EXPECT_EQ(to_floats(context, tensor), (std::vector<float>{1, 2, 3}));
}

TEST(TensorTest, ChannelsLastLiesAsItSays) {
  Context context(Device::cpu);
  const Tensor tensor(context, Shape{1, 2, 3}, DType::f32, Format::channels_last());
  const float values[] = {0, 1, 2, 10, 11, 12};
  from_floats(context, values, tensor);
  const std::vector<float> memory(tensor.data<float>(), tensor.data<float>() + 6);
  EXPECT_EQ(memory, (std::vector<float>{0, 10, 1, 11, 2, 12}));
}

TEST(TensorTest, ValuesAreWhereTheFormatSays) {
  struct Row {
    const char* name;
    Shape shape;
    Format format;
  };
  Format padded = Format::channels_last(), points = Format::channels_last();
  padded.channels = 8;
  points.points = 6;
  // Blocks of 4 inputs by 8 outputs, as in format_test.cpp, and two blocks of one axis.
  const Blocking weights{{24, 8, 2}, {128, 64, 32}, {4, 8}, {1, 0}},
      nested{{8, 4}, {32, 8}, {4, 2}, {0, 0}};
  const auto blocked = [](const Blocking& blocking) {
    return Format{Order::blocked, std::make_shared<const Blocking>(blocking)};
  };
  const Row rows[] = {
      {"row-major", Shape{2, 3, 4, 5}, Format::row_major()},
      {"channels-last", Shape{2, 3, 4, 5}, Format::channels_last()},
      {"channels-last, padded", Shape{2, 3, 4, 5}, padded},
      {"points", Shape{4, 18}, points},
      {"blocked weights", Shape{20, 5, 2}, blocked(weights)},
      {"nested blocks", Shape{7, 4}, blocked(nested)},
      {"empty", Shape{20, 0, 2}, blocked(weights)},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    std::vector<double> values(row.shape.count());
    std::iota(values.begin(), values.end(), 1.0);
    for (Device device : devices()) {
      Context context(device);
      const Tensor tensor(context, row.shape, DType::f32, row.format);
      from_doubles(context, values.data(), tensor);
      EXPECT_EQ(to_doubles(context, tensor), values) << name_of(device);
      const int64_t elements = tensor.elements();
      std::vector<double> expected(elements, 0);
      for (int64_t i = 0; i < tensor.count(); ++i) {
        std::vector<int64_t> index(row.shape.axes());
        for (int64_t axis = row.shape.axes() - 1, rest = i; axis >= 0; --axis) {
          index[axis] = rest % row.shape[axis];
          rest /= row.shape[axis];
        }
        expected[row.format.offset(row.shape, index.data())] = values[i];
      }
      const Tensor memory =
          tensor.memory() ? Tensor(tensor.memory(), 0, Shape{elements}, DType::f32) : tensor;
      EXPECT_EQ(to_doubles(context, memory), expected) << name_of(device);
    }
  }
}

TEST(TensorTest, CopiesAreViews) {
  Context context(Device::cpu);
  const Tensor a(context, Shape{2, 3});
  const Tensor b = a, c = a.reshaped(Shape{6});
  a.data<float>()[5] = 4;
  EXPECT_EQ(b.data<float>()[5], 4);
  EXPECT_EQ(c.data<float>()[5], 4);
  EXPECT_EQ(c.shape(), Shape{6});
  EXPECT_EQ(a.memory(), c.memory());
}

TEST(TensorTest, WindowsOnPlannedMemory) {
  Context context(Device::cpu);
  const auto memory = std::make_shared<Buffer>(context, 64);
  const Tensor first(memory, 0, Shape{4}, DType::f32), second(memory, 16, Shape{2}, DType::f64);
  second.data<double>()[1] = 5;
  EXPECT_EQ(static_cast<double*>(memory->data())[3], 5);
  EXPECT_EQ(static_cast<char*>(second.raw()) - static_cast<char*>(first.raw()), 16);
}

TEST(TensorTest, WrapsTheCallersMemory) {
  Context context(Device::cpu);
  int32_t values[] = {1, 2, 3};
  const Tensor tensor = Tensor::wrap(values, Shape{3}, DType::i32);
  EXPECT_TRUE(tensor);
  EXPECT_EQ(to_floats(context, tensor), (std::vector<float>{1, 2, 3}));
}

TEST(TensorTest, CopyAndZeroBetweenDevices) {
  Context cpu(Device::cpu);
  for (Device device : devices()) {
    Context context(device);
    const std::vector<double> values = numbers(10);
    const Tensor here(cpu, Shape{10}), there(context, Shape{10}), back(cpu, Shape{10});
    from_doubles(cpu, values.data(), here);
    copy(context, here, there);
    copy(context, there, back);
    EXPECT_EQ(to_doubles(cpu, back), values);
    zero(context, there);
    EXPECT_EQ(to_doubles(context, there), std::vector<double>(10, 0));
  }
}

TEST(OnTest, PicksTheType) {
  Context context(Device::cpu);
  const auto size = [&](DType dtype) {
    return on(Tensor(context, Shape{1}, dtype), [&]<typename T>() { return sizeof(T); });
  };
  EXPECT_EQ(size(DType::f32), 4u);
  EXPECT_EQ(size(DType::f64), 8u);
  EXPECT_THROW(size(DType::i32), Error);
}

}  // namespace tensor_test
}  // namespace crema
