// Which ReLUs' gradients a max pooling handles, and how long the ReLUs' outputs live then.
// plan_test.cpp and solver/passes_test.cpp check that gradients stay the same.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "net/net.h"
#include "net/plan/plan.h"
#include "support.h"

namespace crema::tests {
namespace relu_test {

const char* kStart = R"(
  layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
  layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } })";
const char* kRelu = R"(layer { name: "r" type: "ReLU" bottom: "c" top: "c" })";
const char* kPool =
    R"(layer { name: "p" type: "Pooling" bottom: "c" top: "p" loss_weight: 1 pooling_param { kernel_size: 2 stride: 2 } })";

std::string dump_of(const std::string& text, bool fuse = true, Device device = Device::cpu) {
  NetParameter net;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kStart + text, &net));
  Context context(device);
  NetOptions options;
  options.state.set_phase(TRAIN);
  options.fuse = fuse;
  Net n(context, net, options);
  n.forward(0);
  n.backward();
  return n.dump_plan();
}

bool taken(const std::string& dump) {
  return dump.find("its gradient comes through the ReLU") != std::string::npos;
}

// For the convolution's top after the ReLU: the last step of its lifetime.
int last_step_of_c(const std::string& dump) {
  const size_t value = dump.rfind(":c 2x4x6x6"), steps = dump.find(" steps ", value),
               dash = dump.find('-', steps);
  return std::stoi(dump.substr(dash + 1));
}

TEST(ReluOnward, TheOutputIsFreeAfterTheForwardPass) {
  const std::string text = cat(kRelu, kPool), on = dump_of(text), off = dump_of(text, false);
  EXPECT_TRUE(taken(on)) << on;
  expect_part(on, "takes its gradient through the ReLU before");
  // x, convolution, (a reorder), pooling forward; then backward.
  EXPECT_LE(last_step_of_c(on), 3) << on;
  EXPECT_FALSE(taken(off)) << off;
  EXPECT_GT(last_step_of_c(off), 4) << off;
}

TEST(ReluOnward, ThroughConcatAndSeveralPoolings) {
  EXPECT_TRUE(taken(dump_of(cat(kRelu, kPool, R"(
    layer { name: "cat" type: "Concat" bottom: "c" bottom: "c" top: "cat" }
    layer { name: "q" type: "Pooling" bottom: "cat" top: "q" loss_weight: 1 pooling_param { kernel_size: 3 } })"))));
}

TEST(ReluOnward, OnlyWhereAllOfItsGradientIsTakenThrough) {
  const char* others[] = {
      // Another reader, another pooling, a pooling of something other than a ReLU's output only.
      R"(layer { name: "o" type: "Power" bottom: "c" top: "o" loss_weight: 1 })",
      R"(layer { name: "o" type: "Pooling" bottom: "c" top: "o" loss_weight: 1 pooling_param { pool: AVE kernel_size: 2 } })",
      R"(layer { name: "n" type: "Convolution" bottom: "x" top: "n" convolution_param { num_output: 4 kernel_size: 3 } }
         layer { name: "cat" type: "Concat" bottom: "c" bottom: "n" top: "cat" }
         layer { name: "o" type: "Pooling" bottom: "cat" top: "o" loss_weight: 1 pooling_param { kernel_size: 2 } })",
  };
  for (const char* other : others) EXPECT_FALSE(taken(dump_of(cat(kRelu, kPool, other)))) << other;
  EXPECT_FALSE(taken(dump_of(kPool)));
  EXPECT_FALSE(taken(dump_of(cat(
      R"(layer { name: "r" type: "ReLU" bottom: "c" top: "c" relu_param { negative_slope: 0.1 } })",
      kPool))));
  EXPECT_FALSE(taken(dump_of(
      cat(R"(layer { name: "r" type: "ReLU" bottom: "c" top: "c" loss_weight: 1 })", kPool))));
}

// The end of a classifier also takes a dropout's factor, if nothing else sends a gradient back.
TEST(ReluOnward, IntoTheEndOfAClassifier) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const std::string end = R"(
    layer { name: "in2" type: "Input" top: "l" input_param { shape { dim: 2 } } }
    layer { name: "ip1" type: "InnerProduct" bottom: "c" top: "h" inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
    layer { name: "r1" type: "ReLU" bottom: "h" top: "h" }
    DROPOUT
    layer { name: "ip2" type: "InnerProduct" bottom: "h" top: "s" inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "s" bottom: "l" top: "loss" })";
  const std::string other =
      R"(layer { name: "o" type: "Power" bottom: "h" top: "o" loss_weight: 1 })";
  for (const char* dropout : {"", R"(layer { name: "d" type: "Dropout" bottom: "h" top: "h" })"}) {
    std::string text = end;
    text.replace(text.find("DROPOUT"), 7, dropout);
    const std::string alone = dump_of(text, true, Device::gpu);
    EXPECT_TRUE(taken(alone)) << alone;
    expect_part(alone, "takes its gradient through the ReLU before");
    const std::string shared = dump_of(text + other, true, Device::gpu);
    EXPECT_FALSE(taken(shared)) << shared;
    // Through a ReLU twice does no harm, with a factor twice does.
    EXPECT_EQ(shared.find("takes its gradient through") == std::string::npos, *dropout != 0)
        << shared;
  }
}

// A reader that sends no gradient back does no harm.
TEST(ReluOnward, ReadersWithoutGradientDoNotCount) {
  EXPECT_TRUE(
      taken(dump_of(cat(kRelu, kPool, R"(layer { name: "s" type: "Silence" bottom: "c" })"))));
}

}  // namespace relu_test
}  // namespace crema::tests
