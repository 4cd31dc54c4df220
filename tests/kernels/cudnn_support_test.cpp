// Whether cuDNN has engines for the graphs of our convolutions, on a card that need not be present:
// cuDNN answers from a description of the card (h200.json). So this runs without a GPU, and notices
// if a new version of cuDNN drops a fused pattern.
#include "kernels/conv/cudnn_support.h"

#include <gtest/gtest.h>

#include "device/cudnn.h"
#include "kernels/conv/space_to_depth.h"
#include "support.h"

namespace crema::tests {
namespace cudnn_support_test {

enum End { nothing, bias, bias_relu };

// The convolutions of tests/bench/nets; of GoogLeNet's those with other channels than the rest.
struct ConvRow {
  const char* name;
  int64_t batch, channels, size, outputs, kernel, stride, pad, groups;
  End end;
  bool first = false;  // of its net: no gradient of the data
};

const ConvRow kRows[] = {
    {"alexnet conv1", 256, 3, 227, 96, 11, 4, 0, 1, bias_relu, true},
    {"alexnet conv2", 256, 96, 27, 256, 5, 1, 2, 2, bias_relu},
    {"alexnet conv3", 256, 256, 13, 384, 3, 1, 1, 1, bias_relu},
    {"alexnet conv4", 256, 384, 13, 384, 3, 1, 1, 2, bias_relu},
    {"alexnet conv5", 256, 384, 13, 256, 3, 1, 1, 2, bias_relu},
    {"cifar10_full conv1", 100, 3, 32, 32, 5, 1, 2, 1, bias, true},
    {"cifar10_full conv2", 100, 32, 16, 32, 5, 1, 2, 1, bias_relu},
    {"cifar10_full conv3", 100, 32, 8, 64, 5, 1, 2, 1, bias_relu},
    {"googlenet conv1", 128, 3, 224, 64, 7, 2, 3, 1, bias_relu, true},
    {"googlenet conv2r", 128, 64, 56, 64, 1, 1, 0, 1, bias_relu},
    {"googlenet conv2", 128, 64, 56, 192, 3, 1, 1, 1, bias_relu},
    {"googlenet i3a_1x1", 128, 192, 28, 64, 1, 1, 0, 1, bias_relu},
    {"googlenet i3a_3x3", 128, 96, 28, 128, 3, 1, 1, 1, bias_relu},
    {"googlenet i3a_5x5r", 128, 192, 28, 16, 1, 1, 0, 1, bias_relu},
    {"googlenet i3a_5x5", 128, 16, 28, 32, 5, 1, 2, 1, bias_relu},
    {"googlenet i3b_1x1", 128, 256, 28, 128, 1, 1, 0, 1, bias_relu},
    {"googlenet i3b_5x5", 128, 32, 28, 96, 5, 1, 2, 1, bias_relu},
    {"googlenet i4a_1x1", 128, 480, 14, 192, 1, 1, 0, 1, bias_relu},
    {"googlenet i4a_3x3", 128, 96, 14, 208, 3, 1, 1, 1, bias_relu},
    {"googlenet i4b_3x3", 128, 112, 14, 224, 3, 1, 1, 1, bias_relu},
    {"googlenet i4b_5x5r", 128, 512, 14, 24, 1, 1, 0, 1, bias_relu},
    {"googlenet i4b_5x5", 128, 24, 14, 64, 5, 1, 2, 1, bias_relu},
    {"googlenet i4d_3x3", 128, 144, 14, 288, 3, 1, 1, 1, bias_relu},
    {"googlenet aux2_conv", 128, 528, 4, 128, 1, 1, 0, 1, bias_relu},
    {"googlenet i4e_3x3", 128, 160, 14, 320, 3, 1, 1, 1, bias_relu},
    {"googlenet i5a_1x1", 128, 832, 7, 256, 1, 1, 0, 1, bias_relu},
    {"googlenet i5b_5x5", 128, 48, 7, 128, 5, 1, 2, 1, bias_relu},
    {"lenet conv1", 64, 1, 28, 20, 5, 1, 0, 1, bias, true},
    {"lenet conv2", 64, 20, 12, 50, 5, 1, 0, 1, bias},
    {"resnet50 conv1", 128, 3, 224, 64, 7, 2, 3, 1, nothing, true},
    {"resnet50 res2a_b1", 128, 64, 56, 256, 1, 1, 0, 1, nothing},
    {"resnet50 res2a_2a", 128, 64, 56, 64, 1, 1, 0, 1, nothing},
    {"resnet50 res2a_2b", 128, 64, 56, 64, 3, 1, 1, 1, nothing},
    {"resnet50 res2b_2a", 128, 256, 56, 64, 1, 1, 0, 1, nothing},
    {"resnet50 res3a_b1", 128, 256, 56, 512, 1, 2, 0, 1, nothing},
    {"resnet50 res3a_2a", 128, 256, 56, 128, 1, 1, 0, 1, nothing},
    {"resnet50 res3a_2b", 128, 128, 56, 128, 3, 2, 1, 1, nothing},
    {"resnet50 res3a_2c", 128, 128, 28, 512, 1, 1, 0, 1, nothing},
    {"resnet50 res3b_2a", 128, 512, 28, 128, 1, 1, 0, 1, nothing},
    {"resnet50 res3b_2b", 128, 128, 28, 128, 3, 1, 1, 1, nothing},
    {"resnet50 res4a_b1", 128, 512, 28, 1024, 1, 2, 0, 1, nothing},
    {"resnet50 res4a_2a", 128, 512, 28, 256, 1, 1, 0, 1, nothing},
    {"resnet50 res4a_2b", 128, 256, 28, 256, 3, 2, 1, 1, nothing},
    {"resnet50 res4a_2c", 128, 256, 14, 1024, 1, 1, 0, 1, nothing},
    {"resnet50 res4b_2a", 128, 1024, 14, 256, 1, 1, 0, 1, nothing},
    {"resnet50 res4b_2b", 128, 256, 14, 256, 3, 1, 1, 1, nothing},
    {"resnet50 res5a_b1", 128, 1024, 14, 2048, 1, 2, 0, 1, nothing},
    {"resnet50 res5a_2a", 128, 1024, 14, 512, 1, 1, 0, 1, nothing},
    {"resnet50 res5a_2b", 128, 512, 14, 512, 3, 2, 1, 1, nothing},
    {"resnet50 res5a_2c", 128, 512, 7, 2048, 1, 1, 0, 1, nothing},
    {"resnet50 res5b_2a", 128, 2048, 7, 512, 1, 1, 0, 1, nothing},
    {"resnet50 res5b_2b", 128, 512, 7, 512, 3, 1, 1, 1, nothing},
    {"seed_cifar_cnn conv1", 32, 3, 32, 32, 3, 1, 1, 1, bias_relu, true},
    {"seed_cifar_cnn conv2", 32, 32, 32, 32, 3, 1, 0, 1, bias_relu},
    {"seed_cifar_cnn conv3", 32, 32, 15, 64, 3, 1, 1, 1, bias_relu},
    {"seed_cifar_cnn conv4", 32, 64, 15, 64, 3, 1, 0, 1, bias_relu},
    {"vgg16 conv1_1", 64, 3, 224, 64, 3, 1, 1, 1, bias_relu, true},
    {"vgg16 conv1_2", 64, 64, 224, 64, 3, 1, 1, 1, bias_relu},
    {"vgg16 conv2_1", 64, 64, 112, 128, 3, 1, 1, 1, bias_relu},
    {"vgg16 conv2_2", 64, 128, 112, 128, 3, 1, 1, 1, bias_relu},
    {"vgg16 conv3_1", 64, 128, 56, 256, 3, 1, 1, 1, bias_relu},
    {"vgg16 conv3_2", 64, 256, 56, 256, 3, 1, 1, 1, bias_relu},
    {"vgg16 conv4_1", 64, 256, 28, 512, 3, 1, 1, 1, bias_relu},
    {"vgg16 conv4_2", 64, 512, 28, 512, 3, 1, 1, 1, bias_relu},
    {"vgg16 conv5_1", 64, 512, 14, 512, 3, 1, 1, 1, bias_relu},
};

ConvCase case_of(const ConvRow& row, Precision precision) {
  ConvCase c;
  const int64_t size = (row.size + 2 * row.pad - row.kernel) / row.stride + 1;
  c.x = {row.batch, row.channels, row.size, row.size};
  c.w = {row.outputs, row.channels / row.groups, row.kernel, row.kernel};
  c.y = {row.batch, row.outputs, size, size};
  c.stride = {row.stride, row.stride};
  c.pad = {row.pad, row.pad};
  c.dilation = {1, 1};
  c.groups = row.groups;
  c.bias = row.end != nothing;
  c.relu.on = row.end == bias_relu;
  c.order = Order::channels_last;
  c.precision = precision;
  c.dtype = storage_of(precision, DType::f32);
  // As Layer::padded_channels asks for images.
  const int64_t padded = precision == Precision::tf32                     ? 0
                         : precision == Precision::fp16 || row.stride > 1 ? 4
                                                                          : 8;
  if (row.first && row.channels < padded) c.x_channels = padded;
  c.forward = c.backward_data = c.backward_weights = false;
  return c;
}

class CudnnSupported : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    card_ = read_file(std::string(CREMA_TEST_DATA) + "/kernels/h200.json");
    if (cudnn_version() < 90800)
      GTEST_SKIP() << "cuDNN " << cudnn_version() << " takes no descriptions of cards; 9.8 does";
    ConvCase any = case_of(kRows[0], Precision::tf32);
    any.backward_weights = true;
    try {
      conv_cudnn_support(any, card_);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  std::string card_;
};

// Only for 16 bits.
class CudnnSupportedInHalf : public CudnnSupported {};

TEST_P(CudnnSupported, EveryCallOfTheBenchNets) {
  for (const ConvRow& row : kRows) {
    SCOPED_TRACE(row.name);
    ConvCase c = case_of(row, GetParam());
    c.forward = true;
    const CudnnSupport forward = conv_cudnn_support(c, card_);
    EXPECT_TRUE(forward.chosen) << forward.reason;
    EXPECT_EQ(forward.fused, row.end != nothing);
    c.forward = false;
    c.backward_weights = true;
    const CudnnSupport weights = conv_cudnn_support(c, card_);
    EXPECT_TRUE(weights.chosen) << "gradient of the weights: " << weights.reason;
    if (row.first) continue;
    c.backward_weights = false;
    c.backward_data = true;
    const CudnnSupport data = conv_cudnn_support(c, card_);
    EXPECT_TRUE(data.chosen) << "gradient of the data: " << data.reason;
  }
}

// Graphs for "space_to_depth", which replaces a first convolution with a stride.
TEST_P(CudnnSupportedInHalf, BlocksOfTheFirstConvolutions) {
  int chosen = 0;
  for (const ConvRow& row : kRows) {
    if (!row.first || row.stride == 1) continue;
    SCOPED_TRACE(row.name);
    ConvCase c = case_of(row, GetParam());
    std::string reason;
    ASSERT_TRUE(SpaceToDepthCase::supports(c, reason)) << reason;
    c.forward = c.backward_weights = true;
    const CudnnSupport support = conv_cudnn_support(SpaceToDepthCase(c).inner(c), card_);
    EXPECT_TRUE(support.chosen) << support.reason;
    EXPECT_EQ(support.fused, row.end != nothing);
    ++chosen;
  }
  EXPECT_EQ(chosen, 3);
}

// Graphs for batch normalization after a convolution; cases with a first layer, bias or ReLU do not
// use them.
TEST_P(CudnnSupportedInHalf, SumsOfChannels) {
  int asked = 0;
  for (const ConvRow& row : kRows) {
    if (row.first || row.end != nothing) continue;
    SCOPED_TRACE(row.name);
    ConvCase c = case_of(row, GetParam());
    c.forward = c.statistics = c.affine_input = c.backward_weights = true;
    const CudnnSupport support = conv_cudnn_support(c, card_);
    EXPECT_TRUE(support.chosen) << support.reason;
    EXPECT_EQ(support.sums, GetParam() == Precision::fp16);
    EXPECT_EQ(support.affine, GetParam() == Precision::fp16);
    EXPECT_EQ(support.affine_gradient, GetParam() == Precision::fp16);
    ++asked;
  }
  EXPECT_EQ(asked, 22);
}

// Graphs for "per_group".
TEST_P(CudnnSupportedInHalf, GroupsOneByOne) {
  int chosen = 0;
  for (const ConvRow& row : kRows) {
    if (row.groups == 1) continue;
    SCOPED_TRACE(row.name);
    ConvCase c = case_of(row, GetParam());
    c.forward = c.backward_data = c.backward_weights = true;
    const CudnnSupport support = conv_cudnn_support(c, card_, true);
    EXPECT_TRUE(support.chosen) << support.reason;
    EXPECT_TRUE(support.fused);
    ++chosen;
  }
  EXPECT_EQ(chosen, 3);
}

// The answer can be no.
TEST_P(CudnnSupported, NotEverything) {
  ConvCase c = case_of(kRows[0], GetParam());
  c.forward = true;
  c.x_channels = 0;
  c.x = {c.x[0], 64, c.x[2], c.x[3]};
  c.w = {c.w[0], 63, c.w[2], c.w[3]};  // no group of 64 channels
  const CudnnSupport support = conv_cudnn_support(c, card_);
  EXPECT_FALSE(support.chosen || support.fused);
  EXPECT_NE(support.reason, "");
}

INSTANTIATE_TEST_SUITE_P(All, CudnnSupported,
                         testing::Values(Precision::tf32, Precision::bf16, Precision::fp16),
                         [](const auto& info) { return std::string(name_of(info.param)); });
INSTANTIATE_TEST_SUITE_P(All, CudnnSupportedInHalf,
                         testing::Values(Precision::bf16, Precision::fp16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace cudnn_support_test
}  // namespace crema::tests
