// Rounding to integers, and convolutions of integers against those of rounded float32.
#include "kernels/pointwise/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/conv/dense.h"
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

// Steps that follow the weights are those that would be given.
TEST(QuantizedConv, FollowsItsWeights) {
  Context context(Device::cpu);
  DenseCase c;
  c.rows = 3, c.inputs = 40, c.outputs = 2;
  c.bias = false;
  const Tensor x = tensor_of_eighths(context, {3, 40}, DType::f32, {}, 1),
               w = tensor_of_eighths(context, {2, 40}, DType::f32, {}, 2);
  QuantizedWeights given;
  for (int row = 0; row < 2; ++row) {
    float most = 0;
    for (int i = 0; i < 40; ++i) most = std::max(most, std::abs(w.data<float>()[row * 40 + i]));
    given.steps.push_back(most / 127);
  }
  std::vector<std::vector<float>> results;
  for (const QuantizedWeights& weights : {given, QuantizedWeights{}}) {
    c.quantization = LinearQuantization{{}, {}, weights};
    const std::unique_ptr<LinearKernel> kernel = make_dense(context, c);
    const Tensor y(context, {3, 2}),
        workspace(context, {static_cast<int64_t>(kernel->workspace())}, DType::u8);
    kernel->forward(context, x, w, {}, y, workspace);
    results.push_back(to_floats(context, y));
  }
  EXPECT_EQ(results[0], results[1]);
}

struct Row {
  const char* name;
  Shape x, w;
  int64_t groups = 1;
  std::vector<int64_t> stride, pad, dilation;
  bool has_sign = false, bias = true, relu = false, sum = false;
  float slope = 0;
};

const std::vector<Row> kRows = {
    {"3x3", {2, 16, 9, 10}, {32, 16, 3, 3}, 1, {1, 1}, {1, 1}, {1, 1}},
    {"with signs", {2, 16, 9, 10}, {32, 16, 3, 3}, 1, {1, 1}, {1, 1}, {1, 1}, true},
    {"odd channels, a ReLU",
     {1, 13, 7, 6},
     {19, 13, 3, 3},
     1,
     {2, 2},
     {1, 1},
     {1, 1},
     true,
     true,
     true},
    {"an image's channels", {2, 3, 12, 12}, {8, 3, 5, 5}, 1, {2, 2}, {2, 2}, {1, 1}, true},
    {"1x1, no bias", {3, 64, 5, 4}, {24, 64, 1, 1}, 1, {1, 1}, {0, 0}, {1, 1}, false, false},
    {"a sum and a ReLU",
     {1, 32, 8, 8},
     {32, 32, 3, 3},
     1,
     {1, 1},
     {1, 1},
     {1, 1},
     false,
     true,
     true,
     true},
    {"a slope",
     {1, 32, 8, 8},
     {32, 32, 3, 3},
     1,
     {1, 1},
     {1, 1},
     {1, 1},
     true,
     true,
     true,
     false,
     0.1f},
    {"groups", {2, 32, 6, 6}, {64, 16, 3, 3}, 2, {1, 1}, {1, 1}, {1, 1}},
    {"depthwise", {2, 32, 9, 9}, {32, 1, 3, 3}, 32, {1, 1}, {1, 1}, {1, 1}},
    {"depthwise with signs", {2, 24, 9, 9}, {24, 1, 3, 3}, 24, {2, 2}, {1, 1}, {1, 1}, true},
    {"dilation", {1, 16, 12, 12}, {16, 16, 3, 3}, 1, {1, 1}, {2, 2}, {2, 2}},
    {"a fully connected layer", {5, 100, 1}, {30, 100, 1}, 1, {1}, {0}, {1}, false, true, true},
    {"one row", {1, 800, 1}, {10, 800, 1}, 1, {1}, {0}, {1}, true},
};

ConvCase case_of(const Row& row) {
  ConvCase c;
  c.x = row.x;
  c.w = row.w;
  c.y = {row.x[0], row.w[0]};
  for (size_t axis = 0; axis < row.stride.size(); ++axis) {
    const int at = static_cast<int>(axis) + 2;
    c.y.push_back((row.x[at] + 2 * row.pad[axis] - row.dilation[axis] * (row.w[at] - 1) - 1) /
                      row.stride[axis] +
                  1);
  }
  c.stride = row.stride;
  c.pad = row.pad;
  c.dilation = row.dilation;
  c.groups = row.groups;
  c.bias = row.bias;
  (row.sum ? c.sum_relu : c.relu) = {row.relu, row.slope};
  c.sum = row.sum;
  c.order = Order::channels_last;
  c.packs_weights = true;
  LinearQuantization q;
  q.x = row.has_sign ? QuantizedValues{0.03f, -128, 127} : QuantizedValues{0.015f, 0, 255};
  q.w = QuantizedWeights{};
  for (int64_t i = 0; i < row.w[0]; ++i) q.w->steps.push_back(0.01f + 0.001f * (i % 7));
  c.quantization = q;
  return c;
}

// What a kernel made for the case computes. Operands are numbers that `exact_in` has.
std::vector<double> run(Context& context, const ConvCase& c, LinearKernel& conv,
                        DType exact_in = DType::f32) {
  Context cpu(Device::cpu);
  const auto random = [&](const Shape& shape, uint64_t stream, DType dtype,
                          const Format& format = {}) {
    const Tensor rounded = tensor_of(cpu, random_values(shape.count(), stream), shape, exact_in);
    const Tensor tensor(context, shape, dtype, format);
    from_doubles(context, to_doubles(cpu, rounded).data(), tensor);
    return tensor;
  };
  const Format order{c.order, nullptr};
  const Tensor x = random(c.x, 1, c.dtype, order), rows = random(c.w, 2, DType::f32),
               added = random(c.y, 4, c.dtype, order),
               b = c.bias ? random({c.w[0]}, 3, c.dtype) : Tensor();
  Tensor w;
  if (const size_t packed = conv.packed_form().bytes; packed > 0) {
    w = Tensor(context, {static_cast<int64_t>(packed)}, DType::u8);
    conv.pack(context, rows, w);
  } else {
    w = random(c.w, 2, c.dtype, conv.weights_format());
  }
  const Tensor y(context, c.y, c.dtype, order),
      workspace(context, {static_cast<int64_t>(conv.workspace())}, DType::u8);
  if (c.sum) {
    conv.forward_with_sum(context, x, w, b, added, c.sum_relu, y, workspace);
  } else {
    conv.forward(context, x, w, b, y, workspace);
  }
  return to_doubles(context, y);
}

void expect_like(const std::vector<double>& want, const std::vector<double>& got,
                 double tolerance = 2e-6) {
  ASSERT_EQ(want.size(), got.size());
  double largest = 0;
  for (const double value : want) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(want[i], got[i], tolerance * largest) << i;
}

TEST(QuantizedConv, ComputesWithRoundedValues) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    Context context(Device::cpu);
    context.implementation = "plain";
    const ConvCase c = case_of(row);
    const std::unique_ptr<LinearKernel> plain = make_conv(context, c);
    const std::vector<double> want = run(context, c, *plain);
    // The same without packed weights, as in training.
    ConvCase unpacked = c;
    unpacked.packs_weights = false;
    expect_like(want, run(context, unpacked, *make_conv(context, unpacked)));
    std::string reason;
    Context fast(Device::cpu);
    const auto integers = quantized_conv_kernels.make_named("onednn_int8", fast, c, reason);
    if (!integers) {
      std::printf("%s: no integers: %s\n", row.name, reason.c_str());
      continue;
    }
    expect_like(want, run(fast, c, *integers));
  }
}

// Every implementation there, in every type and order, against the CPU's.
TEST(QuantizedConv, ComputesOnAGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  struct Numbers {
    DType dtype;
    Order order;
    Precision precision;
    double tolerance;
  };
  int integers = 0;
  for (const Row& row : kRows) {
    for (const Numbers& numbers :
         {Numbers{DType::f32, Order::channels_last, Precision::fp32, 2e-6},
          Numbers{DType::f32, Order::row_major, Precision::fp32, 2e-6},
          Numbers{DType::f16, Order::channels_last, Precision::fp16, 2e-3},
          Numbers{DType::bf16, Order::channels_last, Precision::bf16, 1.6e-2}}) {
      ConvCase c = case_of(row);
      Context context(Device::cpu);
      context.implementation = "plain";
      const std::vector<double> want = run(context, c, *make_conv(context, c), numbers.dtype);
      c.dtype = numbers.dtype, c.order = numbers.order, c.precision = numbers.precision;
      for (const char* name : {"plain", "int8_gemm"}) {
        SCOPED_TRACE(cat(row.name, ", ", name_of(numbers.dtype), ", ", name));
        Context gpu(Device::gpu);
        std::string reason;
        const auto kernel = quantized_conv_kernels.make_named(name, gpu, c, reason);
        if (!kernel) {
          EXPECT_EQ(reason, "groups of fewer than 8 channels");
          continue;
        }
        integers += kernel->packed_form().bytes > 0 && std::string(name) == "int8_gemm";
        expect_like(want, run(gpu, c, *kernel, numbers.dtype), numbers.tolerance);
      }
    }
  }
  EXPECT_EQ(integers, 4 * 11);  // all but depthwise convolutions
}

// Rounding what a kernel reads changes its results, so the comparison above would not pass without it.
TEST(QuantizedConv, DiffersFromFloats) {
  Context context(Device::cpu);
  context.implementation = "plain";
  ConvCase c = case_of(kRows[1]);
  const std::vector<double> rounded = run(context, c, *make_conv(context, c));
  c.quantization.reset();
  c.packs_weights = false;
  const std::vector<double> exact = run(context, c, *make_conv(context, c));
  double most = 0;
  for (size_t i = 0; i < exact.size(); ++i) most = std::max(most, std::fabs(exact[i] - rounded[i]));
  EXPECT_GT(most, 0.01);
}

}  // namespace quantize_test
}  // namespace crema
