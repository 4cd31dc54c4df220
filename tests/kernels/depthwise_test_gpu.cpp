// Depthwise convolutions in registers and on tensor cores against the plain one in float64, and
// with gradients that blocks add up in any order.
#include <gtest/gtest.h>

#include "device/capture.h"
#include "device/gpu.h"
#include "kernels/conv_case.h"

namespace crema {
namespace depthwise_test_gpu {

const std::vector<Row> kDepthwise = {
    {"3x3", {3, 40, 9, 11}, 40, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 40},
    {"3x3 on one position", {2, 8, 1, 1}, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 8},
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

// Channels of which a thread takes the last two alone.
const std::vector<Row> kDepthwisePairs = {
    {"3x3, pairs", {3, 74, 9, 11}, 74, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 74},
    {"3x3, a pair", {2, 2, 30, 7}, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},
    {"5x5, pairs", {3, 22, 9, 11}, 22, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 22},
    {"3x3 s2, pairs", {3, 42, 13, 12}, 42, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 42},
    {"5x5 s2, pairs", {3, 42, 13, 12}, 42, {5, 5}, {2, 2}, {2, 2}, {1, 1}, 42},
    {"3x3, pairs, many steps", {1, 510, 1100, 1}, 510, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 510},
};

TEST(ConvDepthwise, AgreesWithThePlainConvolution) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  for (const bool repeatable : {true, false}) {
    check(kDepthwise, {"depthwise", "depthwise_tensor"}, repeatable);
    check(kDepthwisePairs, {"depthwise"}, repeatable);
    check({kDepthwise[0], kDepthwise[8]}, {"autotuned"}, repeatable);
  }
}

// So that gradients are cleared before, whichever was faster.
TEST(ConvDepthwise, AddsToGradientsWhereResultsNeedNotRepeat) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  for (const char* implementation : {"depthwise", "depthwise_tensor", "autotuned"}) {
    Context context(Device::gpu);
    context.implementation = implementation;
    context.repeatable = false;
    const ConvCase c = case_of(kDepthwise[0], DType::f16, false, false);
    EXPECT_TRUE(make_conv(context, c)->features().atomic_wgrad) << implementation;
  }
}

// Kernels that start while the previous one ends read its output, also if a graph is recorded whose
// first node is not ours.
TEST(ConvDepthwise, ReadsWhatTheKernelBeforeWrites) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  for (const char* implementation : {"depthwise", "depthwise_tensor"}) {
    Context context(Device::gpu);
    context.implementation = implementation;
    const Shape images{64, 64, 28, 28};
    const ConvCase c =
        case_of({"", images, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 64}, DType::f16, false, false);
    const std::unique_ptr<LinearKernel> conv = make_conv(context, c);
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

}  // namespace depthwise_test_gpu
}  // namespace crema
