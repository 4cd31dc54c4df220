// Kernels of our own for first layers, the other ways to use cuDNN, on blocks of an image's pixels
// and group by group, and what chooses between them, against the plain convolution in float64.
// Numbers are small multiples of 1/8, which 16 bits hold exactly.
#include <gtest/gtest.h>

#include "device/capture.h"
#include "device/gpu.h"
#include "kernels/bias.h"
#include "kernels/block_image.h"
#include "kernels/conv_bodies.h"
#include "kernels/random_values.h"
#include "tensor/on.h"

namespace crema {
namespace {

struct Row {
  const char* name;
  Shape x;
  int64_t outputs;
  std::vector<int64_t> kernel, stride, pad;
  std::vector<int64_t> dilation = {1, 1};
  int64_t groups = 1;
};

const std::vector<Row> kBlocks = {
    {"7x7 s2", {3, 3, 17, 15}, 64, {7, 7}, {2, 2}, {3, 3}},
    {"11x11 s4", {2, 3, 35, 39}, 96, {11, 11}, {4, 4}, {0, 0}},
    {"a kernel of whole blocks", {2, 3, 16, 16}, 16, {4, 4}, {2, 2}, {1, 1}},
    {"one channel", {2, 1, 14, 13}, 8, {3, 3}, {2, 2}, {1, 1}},
    {"four channels", {2, 4, 13, 9}, 24, {5, 5}, {3, 3}, {2, 2}},
    {"eight channels", {2, 8, 9, 12}, 16, {3, 3}, {2, 2}, {1, 1}},
    {"axes differ", {2, 2, 14, 21}, 32, {5, 4}, {2, 3}, {1, 0}},
    {"rows only", {2, 3, 12, 10}, 8, {3, 5}, {2, 1}, {0, 2}},
    {"a pad of more than a block", {1, 3, 8, 8}, 8, {6, 6}, {2, 2}, {5, 5}},
    {"rest of the image unread", {2, 3, 24, 22}, 8, {3, 3}, {4, 4}, {0, 0}},
};

const std::vector<Row> kRows = {
    {"7x7 s2", {2, 3, 21, 44}, 64, {7, 7}, {2, 2}, {3, 3}},
    {"more bands than processors", {40, 3, 30, 20}, 64, {7, 7}, {2, 2}, {3, 3}},
    {"two blocks of outputs, an even pad", {3, 3, 17, 36}, 128, {7, 8}, {2, 2}, {2, 4}},
    {"no pad", {2, 4, 19, 70}, 64, {7, 7}, {2, 2}, {0, 0}},
    {"a narrow kernel", {2, 1, 12, 14}, 64, {7, 3}, {2, 2}, {6, 1}},
};

const std::vector<Row> kPixels = {
    {"3x3", {2, 3, 9, 21}, 64, {3, 3}, {1, 1}, {1, 1}},
    {"more tiles than warps", {24, 3, 64, 50}, 64, {3, 3}, {1, 1}, {1, 1}},
    {"two blocks of outputs, no pad", {2, 4, 12, 19}, 128, {3, 3}, {1, 1}, {0, 0}},
    {"one channel, a large pad", {2, 1, 5, 3}, 64, {3, 3}, {1, 1}, {2, 3}},
    {"3x3 s2", {3, 3, 17, 36}, 64, {3, 3}, {2, 2}, {1, 1}},
    {"3x3 s2, axes differ", {2, 2, 20, 71}, 128, {3, 3}, {2, 2}, {0, 2}},
};

const std::vector<Row> kGroups = {
    {"two groups", {3, 32, 7, 9}, 48, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},
    {"three groups s2", {2, 24, 9, 8}, 24, {5, 3}, {2, 2}, {2, 0}, {1, 1}, 3},
    {"dilation", {2, 64, 11, 10}, 32, {3, 3}, {1, 1}, {2, 2}, {2, 2}, 4},
};

const std::vector<Row> kDepthwise = {
    {"3x3", {3, 40, 9, 11}, 40, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 40},
    {"3x3 on a place", {2, 8, 1, 1}, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 8},
    {"3x3 on a row", {5, 32, 1, 37}, 32, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 32},
    {"3x3, two bands", {2, 64, 30, 56}, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 64},
    {"3x3, bands of odd width", {2, 32, 13, 77}, 32, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 32},
    {"3x3, 28 wide", {3, 96, 28, 28}, 96, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 96},
    {"3x3, small images", {9, 48, 7, 7}, 48, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 48},
    {"3x3, many steps", {1, 512, 1100, 1}, 512, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 512},
    {"5x5", {3, 24, 9, 11}, 24, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 24},
    {"5x5, 28 wide", {3, 72, 29, 28}, 72, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 72},
    {"5x5, small images", {9, 32, 7, 7}, 32, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 32},
    {"5x5, many steps", {1, 512, 1100, 1}, 512, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 512},
    {"5x5, two bands", {2, 32, 14, 40}, 32, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 32},
    {"3x3 s2", {3, 40, 13, 12}, 40, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 40},
    {"5x5 s2", {3, 40, 13, 12}, 40, {5, 5}, {2, 2}, {2, 2}, {1, 1}, 40},
    {"3x3 s2, bands of odd width", {2, 32, 9, 77}, 32, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 32},
    {"3x3 s2, many steps", {1, 512, 1100, 1}, 512, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 512},
    {"5x5 s2, 28 wide", {2, 40, 56, 56}, 40, {5, 5}, {2, 2}, {2, 2}, {1, 1}, 40},
    {"3x3 without pad", {2, 16, 9, 8}, 16, {3, 3}, {1, 1}, {0, 0}, {1, 1}, 16},
    {"3x3, dilation", {2, 16, 9, 8}, 16, {3, 3}, {1, 1}, {2, 2}, {2, 2}, 16},
};

ConvCase case_of(const Row& row, DType dtype, bool bias, bool relu) {
  ConvCase c;
  c.x = row.x;
  c.w = {row.outputs, row.x[1] / row.groups, row.kernel[0], row.kernel[1]};
  c.y = {row.x[0], row.outputs};
  for (int i = 0; i < 2; ++i) {
    const int64_t window = row.dilation[i] * (row.kernel[i] - 1) + 1;
    c.y.push_back((row.x[i + 2] + 2 * row.pad[i] - window) / row.stride[i] + 1);
  }
  c.stride = row.stride, c.pad = row.pad, c.dilation = row.dilation;
  c.groups = row.groups;
  c.bias = bias, c.relu = relu;
  c.backward_data = row.groups > 1;
  c.backward_weights = true;
  c.dtype = dtype;
  if (!is_half(dtype)) return c;
  c.order = Order::channels_last;
  // As the layer asks for them.
  const bool wide = dtype == DType::bf16 && c.stride == std::vector<int64_t>{1, 1};
  if (row.groups == 1 && row.x[1] < 4) c.x_channels = wide ? 8 : 4;
  return c;
}

struct Result {
  std::vector<double> y, dx, dw, db, dw_added, db_added, dx_joined, dw_joined, db_joined;
};

// As the layer calls it.
Result run(Context& context, const ConvCase& c) {
  const std::unique_ptr<WeightedSum> conv = make_conv(context, c);
  const bool half = is_half(c.dtype);
  const Format images{c.order, nullptr, c.x_channels}, tops{c.order, nullptr},
      weights = conv->weights_format();
  const DType real = half ? DType::f32 : c.dtype;
  const Tensor x = tensor_of_eighths(context, c.x, c.dtype, images, 1),
               w = tensor_of_eighths(context, c.w, c.dtype, weights, 2),
               b = tensor_of_eighths(context, {c.w[0]}, c.dtype, {}, 3),
               dy = tensor_of_eighths(context, c.y, c.dtype, tops, 4),
               sign = tensor_of_eighths(context, c.y, c.dtype, tops, 5);
  const Tensor y(context, c.y, c.dtype, tops), dx(context, c.x, c.dtype, images),
      dw = tensor_of_eighths(context, c.w, real, weights, 6),
      db = tensor_of_eighths(context, {c.w[0]}, real, {}, 7),
      workspace = tensor_of_eighths(context, {static_cast<int64_t>(conv->workspace() / 4 + 1)},
                                    DType::f32, {}, 8);
  const Tensor bytes = part_of(workspace, 0, {static_cast<int64_t>(workspace.bytes())}, DType::u8);
  Result r;
  conv->forward(context, x, w, c.bias ? b : Tensor(), y, bytes);
  r.y = to_doubles(context, y);
  const bool along = conv->takes_relu();
  if (c.relu && !along) {
    on_real(dy, [&]<typename T>() {
      relu_gradient(context, c.y.count(), sign.data<T>(), {}, dy.data<T>());
    });
  }
  const OutputGradient g = along && c.relu ? OutputGradient(dy, sign) : OutputGradient(dy);
  const Tensor bias_gradient = c.bias ? db : Tensor();
  if (c.backward_data) conv->backward_data(context, g, w, dx, bytes);
  r.dx = to_doubles(context, dx);
  conv->backward_weights(context, x, g, dw, bias_gradient, false, false, bytes);
  r.dw = to_doubles(context, dw), r.db = to_doubles(context, db);
  conv->backward_weights(context, x, g, dw, bias_gradient, true, true, bytes);
  r.dw_added = to_doubles(context, dw), r.db_added = to_doubles(context, db);
  if (c.backward_data) {
    conv->backward_both(context, x, g, w, dx, dw, bias_gradient, false, false, bytes);
    r.dx_joined = to_doubles(context, dx);
    r.dw_joined = to_doubles(context, dw), r.db_joined = to_doubles(context, db);
  }
  return r;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected,
                 double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double worst = 0, most = 1;
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(got[i] - expected[i]);
    worst = difference <= worst ? worst : difference;  // a NaN is kept
    most = std::max(most, std::abs(expected[i]));
  }
  EXPECT_LE(worst, tolerance * most) << what;
}

void check(const std::vector<Row>& rows, const std::vector<const char*>& implementations) {
  for (const Row& row : rows) {
    for (const bool bias : {false, true}) {
      for (const bool relu : {false, true}) {
        Context cpu(Device::cpu);
        cpu.implementation = "plain";
        const Result expected = run(cpu, case_of(row, DType::f64, bias, relu));
        for (const char* implementation : implementations) {
          for (const DType dtype : {DType::f16, DType::bf16}) {
            Context context(Device::gpu);
            context.implementation = implementation;
            const Result got = run(context, case_of(row, dtype, bias, relu));
            ASSERT_FALSE(context.served.empty());
            EXPECT_EQ(context.served[0], implementation);
            const double rounding = dtype == DType::f16 ? 1e-3 : 8e-3;
            const std::string what = cat(row.name, ", ", implementation, ", ", name_of(dtype),
                                         bias ? ", bias" : "", relu ? ", relu" : "");
            expect_near(got.y, expected.y, rounding, what + ": y");
            expect_near(got.dx, expected.dx, rounding, what + ": dx");
            expect_near(got.dw, expected.dw, rounding, what + ": dw");
            expect_near(got.db, expected.db, rounding, what + ": db");
            expect_near(got.dw_added, expected.dw_added, rounding, what + ": dw added");
            expect_near(got.db_added, expected.db_added, rounding, what + ": db added");
            expect_near(got.dx_joined, expected.dx_joined, rounding, what + ": dx joined");
            expect_near(got.dw_joined, expected.dw_joined, rounding, what + ": dw joined");
            expect_near(got.db_joined, expected.db_joined, rounding, what + ": db joined");
          }
        }
      }
    }
  }
}

TEST(ConvBlocks, AgreesWithThePlainConvolution) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  check(kBlocks, {"blocks", "fastest"});
}

TEST(ConvRows, AgreesWithThePlainConvolution) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  check(kRows, {"rows"});
}

TEST(ConvPixels, AgreesWithThePlainConvolution) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  check(kPixels, {"pixels"});
  check({kPixels[0], kPixels[4]}, {"fastest"});
}

TEST(ConvGroups, AgreesWithThePlainConvolution) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  check(kGroups, {"groups", "fastest"});
}

TEST(ConvDepthwise, AgreesWithThePlainConvolution) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  check(kDepthwise, {"depthwise", "tensor"});
  check({kDepthwise[0], kDepthwise[8]}, {"fastest"});
}

// Kernels that start while the one before ends read what that one writes, also where a graph is
// recorded, whose first node is none of theirs.
TEST(ConvDepthwise, ReadsWhatTheKernelBeforeWrites) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  for (const char* implementation : {"depthwise", "tensor"}) {
    Context context(Device::gpu);
    context.implementation = implementation;
    const Shape images{64, 64, 28, 28};
    const ConvCase c =
        case_of({"", images, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 64}, DType::f16, false, false);
    const std::unique_ptr<WeightedSum> conv = make_conv(context, c);
    const Format format = Format::channels_last();
    const Tensor x = tensor_of_eighths(context, images, c.dtype, format, 1),
                 w = tensor_of_eighths(context, c.w, c.dtype, conv->weights_format(), 2);
    const Tensor y(context, images, c.dtype, format), z(context, images, c.dtype, format);
    const auto run = [&] {
      check_cuda(cudaMemsetAsync(y.raw(), 0, y.bytes(), context.gpu().stream), "clearing");
      conv->forward(context, x, w, Tensor(), y, Tensor());
      for (int i = 0; i < 2; ++i) {
        conv->forward(context, y, w, Tensor(), z, Tensor());
        conv->backward_data(context, z, w, y, Tensor());
      }
    };
    const auto wait = [&] { context.synchronize(); };
    conv->forward(context, x, w, Tensor(), y, Tensor()), wait();
    for (int i = 0; i < 2; ++i) {
      conv->forward(context, y, w, Tensor(), z, Tensor()), wait();
      conv->backward_data(context, z, w, y, Tensor()), wait();
    }
    const std::vector<double> expected = to_doubles(context, y);
    run();
    EXPECT_EQ(to_doubles(context, y), expected) << implementation;
    Capture capture;
    capture.record(context, run);
    capture.launch(context);
    EXPECT_EQ(to_doubles(context, y), expected) << implementation << ", recorded";
  }
}

// Of the channels, then of their squares.
std::vector<double> channel_sums_of(const std::vector<double>& values, const Shape& shape) {
  std::vector<double> sums(2 * shape[1]);
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t channel = static_cast<int64_t>(i) / shape.count(2) % shape[1];
    sums[channel] += values[i];
    sums[shape[1] + channel] += values[i] * values[i];
  }
  return sums;
}

TEST(ConvRows, GivesTheSumsOfItsChannels) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  for (const Row& row : kRows) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      SCOPED_TRACE(cat(row.name, ", ", name_of(dtype)));
      Context context(Device::gpu);
      context.implementation = "rows";
      ConvCase c = case_of(row, dtype, false, false);
      c.sums = true;
      const std::unique_ptr<WeightedSum> conv = make_conv(context, c);
      ASSERT_TRUE(conv->gives_sums());
      const Format format = Format::channels_last();
      const Tensor x = tensor_of_eighths(context, c.x, dtype, {c.order, nullptr, c.x_channels}, 1);
      const Tensor w = tensor_of_eighths(context, c.w, dtype, conv->weights_format(), 2);
      const Tensor y(context, c.y, dtype, format), with(context, c.y, dtype, format),
          sums(context, {2, c.y[1]}, DType::f32);
      conv->forward(context, x, w, Tensor(), y, Tensor());
      const std::vector<double> values = to_doubles(context, y);
      // Twice: nothing of the first call stays.
      for (int i = 0; i < 2; ++i) {
        conv->forward_summing(context, x, Tensor(), w, with, sums, Tensor());
        EXPECT_EQ(to_doubles(context, with), values);
        expect_near(to_doubles(context, sums), channel_sums_of(values, c.y), 1e-3, "sums");
      }
    }
  }
}

// The sums that come along are those of y, and y is the same; from x, and from what is before a
// scale, a shift and a ReLU. So is the gradient of the weights.
TEST(ConvSums, AreThoseOfTheChannels) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const std::vector<Row> rows = {{"1x1", {4, 64, 14, 14}, 128, {1, 1}, {1, 1}, {0, 0}},
                                 {"3x3", {3, 64, 9, 12}, 64, {3, 3}, {1, 1}, {1, 1}},
                                 {"3x3 s2", {2, 128, 14, 14}, 64, {3, 3}, {2, 2}, {1, 1}},
                                 {"1x1 s2", {2, 64, 15, 15}, 256, {1, 1}, {2, 2}, {0, 0}}};
  for (const Row& row : rows) {
    for (const char* implementation : {"cudnn", "fastest"}) {
      SCOPED_TRACE(cat(row.name, ", ", implementation));
      Context context(Device::gpu);
      context.implementation = implementation;
      context.repeatable = false;
      context.tune(TuneMode::off);
      ConvCase c = case_of(row, DType::f16, false, false);
      c.sums = c.affine = true;
      const std::unique_ptr<WeightedSum> conv = make_conv(context, c);
      if (implementation == std::string("fastest") && !conv->gradient_takes_affine()) continue;
      ASSERT_TRUE(conv->gives_sums());
      ASSERT_TRUE(conv->takes_affine());
      const Format format = Format::channels_last();
      const Tensor x = tensor_of_eighths(context, c.x, c.dtype, format, 1),
                   w = tensor_of_eighths(context, c.w, c.dtype, conv->weights_format(), 2);
      const Tensor y(context, c.y, c.dtype, format), with(context, c.y, c.dtype, format),
          sums(context, {2, c.y[1]}, DType::f32),
          workspace(context, {static_cast<int64_t>(conv->workspace())}, DType::u8);
      const Tensor affine = tensor_of_eighths(context, {2, c.x[1]}, DType::f16, {}, 3);
      std::vector<double> before = to_doubles(context, x);
      const std::vector<double> numbers = to_doubles(context, affine);
      for (size_t i = 0; i < before.size(); ++i) {
        const int64_t channel = static_cast<int64_t>(i) / c.x.count(2) % c.x[1];
        before[i] = std::max(before[i] * numbers[channel] + numbers[c.x[1] + channel], 0.);
      }
      const Tensor made(context, c.x, c.dtype, format);
      from_doubles(context, before.data(), made);
      for (const bool given : {false, true}) {
        conv->forward(context, given ? made : x, w, Tensor(), y, workspace);
        const std::vector<double> values = to_doubles(context, y);
        const std::vector<double> expected = channel_sums_of(values, c.y);
        // Twice: nothing of the first call stays.
        for (int i = 0; i < 2; ++i) {
          conv->forward_summing(context, x, given ? affine : Tensor(), w, with, sums, workspace);
          expect_near(to_doubles(context, with), values, 1e-3, given ? "y, affine" : "y");
          expect_near(to_doubles(context, sums), expected, 1e-3, given ? "sums, affine" : "sums");
        }
      }
      ASSERT_TRUE(conv->gradient_takes_affine());
      const Tensor dy = tensor_of_eighths(context, c.y, c.dtype, format, 4);
      const Format weights = conv->weights_format();
      const Tensor plain(context, c.w, DType::f32, weights), dw(context, c.w, DType::f32, weights);
      for (const bool accumulate : {false, true}) {
        conv->backward_weights(context, made, dy, plain, Tensor(), accumulate, false, workspace);
        conv->backward_weights_affine(context, x, affine, dy, dw, accumulate, workspace);
        expect_near(to_doubles(context, dw), to_doubles(context, plain), 2e-3, "dw");
      }
    }
  }
}

// The images that the kernels make, not what is computed from them.
TEST(ConvBlocks, ExtentsOfTheBlockImage) {
  const BlockCase small(case_of(kBlocks[0], DType::f16, true, true));
  EXPECT_EQ(small.overlap, 2);  // 2 x 2 x 4 channels are too few
  EXPECT_EQ(small.deep, 32);
  EXPECT_EQ(small.taps[0], 4);
  EXPECT_EQ(small.taps[1], 2);
  EXPECT_EQ(small.blocks[0], 9 + 3);
  EXPECT_EQ(small.blocks[1], 8 + 2);
  const BlockCase large(case_of(kBlocks[1], DType::bf16, true, true));
  EXPECT_EQ(large.overlap, 1);
  EXPECT_EQ(large.deep, 64);
  EXPECT_EQ(large.taps[1], 3);
  EXPECT_EQ(large.blocks[1], 8 + 2);
}

TEST(ConvBlocks, RefusesWhatItCannotServe) {
  const auto reason_for = [](const auto& change) {
    ConvCase c = case_of(kBlocks[0], DType::f16, true, true);
    change(c);
    std::string reason;
    EXPECT_FALSE(BlockCase::serves(c, reason));
    return reason;
  };
  EXPECT_EQ(reason_for([](ConvCase& c) { c.dilation = {1, 2}; }), "dilation");
  EXPECT_EQ(reason_for([](ConvCase& c) { c.stride = {1, 1}; }), "stride 1");
  EXPECT_EQ(reason_for([](ConvCase& c) { c.backward_data = true; }), "no gradient of the data");
  EXPECT_EQ(reason_for([](ConvCase& c) { c.x_channels = 0; }), "3 channels in memory, not 4 or 8");
  EXPECT_EQ(reason_for([](ConvCase& c) { c.order = Order::plain; }),
            "for channels-last images of two axes only");
}

}  // namespace
}  // namespace crema
