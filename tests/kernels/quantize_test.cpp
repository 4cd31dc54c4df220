// Rounding to integers, and convolutions of integers against those of rounded float32.
#include "kernels/pointwise/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/conv/dense.h"
#include "kernels/random_values.h"

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

std::vector<double> run(Context& context, const ConvCase& c, LinearKernel& conv) {
  const auto random = [&](const Shape& shape, uint64_t stream, const Format& format = {}) {
    const Tensor tensor(context, shape, DType::f32, format);
    from_doubles(context, random_values(shape.count(), stream).data(), tensor);
    return tensor;
  };
  const Format last = Format::channels_last();
  const Tensor x = random(c.x, 1, last), rows = random(c.w, 2), added = random(c.y, 4, last),
               b = c.bias ? random({c.w[0]}, 3) : Tensor();
  Tensor w = rows;
  if (const size_t packed = conv.packed_form().bytes; packed > 0) {
    w = Tensor(context, {static_cast<int64_t>(packed)}, DType::u8);
    conv.pack(context, rows, w);
  } else {
    w = random(c.w, 2, conv.weights_format());
  }
  const Tensor y(context, c.y, DType::f32, last),
      workspace(context, {static_cast<int64_t>(conv.workspace())}, DType::u8);
  if (c.sum) {
    conv.forward_with_sum(context, x, w, b, added, c.sum_relu, y, workspace);
  } else {
    conv.forward(context, x, w, b, y, workspace);
  }
  return to_doubles(context, y);
}

void expect_like(const std::vector<double>& want, const std::vector<double>& got) {
  ASSERT_EQ(want.size(), got.size());
  double largest = 0;
  for (const double value : want) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(want[i], got[i], 2e-6 * largest) << i;
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
