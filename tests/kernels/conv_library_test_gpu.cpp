// Kernels of our own for first layers, the other ways to use cuDNN, on blocks of an image's pixels
// and group by group, and the choice between them, against the plain convolution in float64.
// Numbers are small multiples of 1/8, which are exact in 16 bits.
#include <gtest/gtest.h>

#include "cache_folder.h"
#include "device/capture.h"
#include "device/cudnn.h"
#include "device/gpu.h"
#include "kernels/conv/space_to_depth.h"
#include "kernels/conv_case.h"

namespace crema {
namespace conv_library_test_gpu {

const std::vector<Row> kSpaceToDepth = {
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

const std::vector<Row> kStem7x7s2 = {
    {"7x7 s2", {2, 3, 21, 44}, 64, {7, 7}, {2, 2}, {3, 3}},
    {"more bands than processors", {40, 3, 30, 20}, 64, {7, 7}, {2, 2}, {3, 3}},
    {"two blocks of outputs, an even pad", {3, 3, 17, 36}, 128, {7, 8}, {2, 2}, {2, 4}},
    {"no pad", {2, 4, 19, 70}, 64, {7, 7}, {2, 2}, {0, 0}},
    {"a narrow kernel", {2, 1, 12, 14}, 64, {7, 3}, {2, 2}, {6, 1}},
};

const std::vector<Row> kStem3x3 = {
    {"3x3", {2, 3, 9, 21}, 64, {3, 3}, {1, 1}, {1, 1}},
    {"more tiles than warps", {24, 3, 64, 50}, 64, {3, 3}, {1, 1}, {1, 1}},
    {"two blocks of outputs, no pad", {2, 4, 12, 19}, 128, {3, 3}, {1, 1}, {0, 0}},
    {"one channel, a large pad", {2, 1, 5, 3}, 64, {3, 3}, {1, 1}, {2, 3}},
    {"3x3 s2", {3, 3, 17, 36}, 64, {3, 3}, {2, 2}, {1, 1}},
    {"3x3 s2, axes differ", {2, 2, 20, 71}, 128, {3, 3}, {2, 2}, {0, 2}},
};

const std::vector<Row> kPerGroup = {
    {"two groups", {3, 32, 7, 9}, 48, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},
    {"three groups s2", {2, 24, 9, 8}, 24, {5, 3}, {2, 2}, {2, 0}, {1, 1}, 3},
    {"dilation", {2, 64, 11, 10}, 32, {3, 3}, {1, 1}, {2, 2}, {2, 2}, 4},
};

const std::vector<Row> kProducts = {
    {"few channels", {3, 4, 17, 15}, 24, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 1, true},
    {"three channels s2", {2, 3, 23, 22}, 16, {7, 7}, {2, 2}, {3, 3}},
    {"dilation", {2, 16, 11, 14}, 32, {3, 2}, {1, 1}, {1, 0}, {1, 2}, 1, true},
};

const std::vector<Row> kPixels = {
    {"1x1", {3, 32, 9, 7}, 40, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1, true},
    {"1x1 of one image", {1, 64, 4, 4}, 10, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1, true},
};

TEST(ConvProducts, AgreeWithThePlainConvolution) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  for (const bool repeatable : {true, false}) {
    check(kProducts, {"implicit_gemm", "direct_conv", "autotuned"}, repeatable);
    check(kPixels, {"small_gemm", "direct_conv", "autotuned"}, repeatable);
    check(kPerGroup, {"implicit_gemm"}, repeatable);
  }
}

// A kernel that lacks a call declines the case, unless the autotuner asks for any.
TEST(ConvProducts, DirectConvolutionDeclinesAStridedGradientOfTheData) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  ConvCase c = case_of(kProducts[1], DType::f16, true, true);
  c.backward_data = true;
  std::string reason;
  EXPECT_EQ(conv_kernels.make_named("direct_conv", context, c, reason), nullptr);
  EXPECT_NE(reason, "");
  c.is_candidate = true;
  const auto kernel = conv_kernels.make_named("direct_conv", context, c, reason);
  ASSERT_NE(kernel, nullptr);
  const ConvCalls calls = kernel->features().calls;
  EXPECT_TRUE(calls.fprop && !calls.dgrad && calls.wgrad);
  c.groups = 4, c.w[1] = 1;
  EXPECT_EQ(conv_kernels.make_named("direct_conv", context, c, reason), nullptr);
}

TEST(ConvSpaceToDepth, AgreesWithThePlainConvolution) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  if (!has_cudnn()) GTEST_SKIP() << "no cuDNN in this build";
  check(kSpaceToDepth, {"space_to_depth", "autotuned"});
}

TEST(ConvStem7x7s2, AgreesWithThePlainConvolution) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  check(kStem7x7s2, {"stem_7x7s2"});
}

TEST(ConvStem3x3, AgreesWithThePlainConvolution) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  check(kStem3x3, {"stem_3x3"});
  check({kStem3x3[0], kStem3x3[4]}, {"autotuned"});
}

TEST(ConvPerGroup, AgreesWithThePlainConvolution) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  if (!has_cudnn()) GTEST_SKIP() << "no cuDNN in this build";
  check(kPerGroup, {"per_group", "autotuned"});
}

// Replacements for cuDNN in a build without it, including padded channels and groups.
TEST(ConvIm2col, AgreesWithThePlainConvolution) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  for (const std::vector<Row>& rows : {kSpaceToDepth, kStem3x3, kPerGroup}) check(rows, {"im2col"});
  check({{"depthwise 7x7", {2, 24, 9, 11}, 24, {7, 7}, {1, 1}, {3, 3}, {1, 1}, 24},
         {"odd channels", {2, 5, 8, 7}, 3, {1, 1}, {1, 1}, {0, 0}}},
        {"im2col"});
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

TEST(ConvStem7x7s2, GivesTheSumsOfItsChannels) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  for (const Row& row : kStem7x7s2) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      SCOPED_TRACE(cat(row.name, ", ", name_of(dtype)));
      Context context(Device::gpu);
      context.implementation = "stem_7x7s2";
      ConvCase c = case_of(row, dtype, false, false);
      c.statistics = true;
      const std::unique_ptr<LinearKernel> conv = make_conv(context, c);
      ASSERT_TRUE(conv->features().forward_statistics);
      const Format format = Format::channels_last();
      const Tensor x = tensor_of_eighths(context, c.x, dtype, {c.order, nullptr, c.x_channels}, 1);
      const Tensor w = tensor_of_eighths(context, c.w, dtype, conv->weights_format(), 2);
      const Tensor y(context, c.y, dtype, format), with(context, c.y, dtype, format),
          sums(context, {2, c.y[1]}, DType::f32);
      conv->forward(context, x, w, Tensor(), y, Tensor());
      const std::vector<double> values = to_doubles(context, y);
      // Twice: nothing of the first call remains.
      for (int i = 0; i < 2; ++i) {
        conv->forward_with_statistics(context, x, Tensor(), w, with, sums, Tensor());
        EXPECT_EQ(to_doubles(context, with), values);
        expect_near(to_doubles(context, sums), channel_sums_of(values, c.y), 1e-3, "sums");
      }
    }
  }
}

// A later run takes the plans that an earlier one chose, which it makes by their names.
TEST(ConvCudnn, TakesThePlansThatAnEarlierRunChose) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  if (!has_cudnn()) GTEST_SKIP() << "no cuDNN in this build";
  const tests::CacheFolder folder;
  const std::vector<Row> rows = {{"1x1", {4, 64, 14, 14}, 128, {1, 1}, {1, 1}, {0, 0}},
                                 {"3x3 s2", {2, 128, 14, 14}, 64, {3, 3}, {2, 2}, {1, 1}}};
  for (const Row& row : rows) {
    for (const DType dtype : {DType::f16, DType::f32}) {
      SCOPED_TRACE(cat(row.name, " ", name_of(dtype)));
      std::vector<std::vector<std::string>> chosen;
      for (int run = 0; run < 2; ++run) {
        Context context(Device::gpu);
        context.implementation = "cudnn";
        context.tune(TuneMode::quick);
        ConvCase c = case_of(row, dtype, false, false);
        c.statistics = dtype == DType::f16;
        make_conv(context, c);
        EXPECT_EQ(context.gpu().tuning.spent.answers > 0, run == 0);
        context.end_tuning();
        chosen.push_back(context.chosen);
      }
      EXPECT_FALSE(chosen[0].empty());
      EXPECT_EQ(chosen[0], chosen[1]);
    }
  }
}

// The fused sums are those of y, and y is the same; from x, and from what is before a scale, a
// shift and a ReLU. So is the gradient of the weights.
TEST(ConvSums, AreThoseOfTheChannels) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  if (!has_cudnn()) GTEST_SKIP() << "no cuDNN in this build";
  const std::vector<Row> rows = {{"1x1", {4, 64, 14, 14}, 128, {1, 1}, {1, 1}, {0, 0}},
                                 {"3x3", {3, 64, 9, 12}, 64, {3, 3}, {1, 1}, {1, 1}},
                                 {"3x3 s2", {2, 128, 14, 14}, 64, {3, 3}, {2, 2}, {1, 1}},
                                 {"1x1 s2", {2, 64, 15, 15}, 256, {1, 1}, {2, 2}, {0, 0}}};
  for (const Row& row : rows) {
    for (const char* implementation : {"cudnn", "autotuned"}) {
      SCOPED_TRACE(cat(row.name, ", ", implementation));
      Context context(Device::gpu);
      context.implementation = implementation;
      context.repeatable = false;
      context.tune(TuneMode::off);
      ConvCase c = case_of(row, DType::f16, false, false);
      c.statistics = c.affine_input = true;
      const std::unique_ptr<LinearKernel> conv = make_conv(context, c);
      if (implementation == std::string("autotuned") && !conv->features().wgrad_affine_input)
        continue;
      ASSERT_TRUE(conv->features().forward_statistics);
      ASSERT_TRUE(conv->features().forward_affine_input);
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
        // Twice: nothing of the first call remains.
        for (int i = 0; i < 2; ++i) {
          conv->forward_with_statistics(context, x, given ? affine : Tensor(), w, with, sums,
                                        workspace);
          expect_near(to_doubles(context, with), values, 1e-3, given ? "y, affine" : "y");
          expect_near(to_doubles(context, sums), expected, 1e-3, given ? "sums, affine" : "sums");
        }
      }
      ASSERT_TRUE(conv->features().wgrad_affine_input);
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

// The images that the kernels make, not the results computed from them.
TEST(ConvSpaceToDepth, ExtentsOfTheBlockImage) {
  const SpaceToDepthCase small(case_of(kSpaceToDepth[0], DType::f16, true, true));
  EXPECT_EQ(small.overlap, 2);  // 2 x 2 x 4 channels are too few
  EXPECT_EQ(small.deep, 32);
  EXPECT_EQ(small.taps[0], 4);
  EXPECT_EQ(small.taps[1], 2);
  EXPECT_EQ(small.blocks[0], 9 + 3);
  EXPECT_EQ(small.blocks[1], 8 + 2);
  const SpaceToDepthCase large(case_of(kSpaceToDepth[1], DType::bf16, true, true));
  EXPECT_EQ(large.overlap, 1);
  EXPECT_EQ(large.deep, 64);
  EXPECT_EQ(large.taps[1], 3);
  EXPECT_EQ(large.blocks[1], 8 + 2);
}

TEST(ConvSpaceToDepth, RefusesWhatItCannotServe) {
  const auto reason_for = [](const auto& change) {
    ConvCase c = case_of(kSpaceToDepth[0], DType::f16, true, true);
    change(c);
    std::string reason;
    EXPECT_FALSE(SpaceToDepthCase::supports(c, reason));
    return reason;
  };
  EXPECT_EQ(reason_for([](ConvCase& c) { c.dilation = {1, 2}; }), "dilation");
  EXPECT_EQ(reason_for([](ConvCase& c) { c.stride = {1, 1}; }), "stride 1");
  EXPECT_EQ(reason_for([](ConvCase& c) { c.backward_data = true; }), "no gradient of the data");
  EXPECT_EQ(reason_for([](ConvCase& c) { c.x_channels = 0; }), "3 channels in memory, not 4 or 8");
  EXPECT_EQ(reason_for([](ConvCase& c) { c.order = Order::row_major; }),
            "for channels-last images of two axes only");
}

}  // namespace conv_library_test_gpu
}  // namespace crema
