// NetOptions::weights_of: nets with their own contexts on the same parameters.
#include <google/protobuf/text_format.h>

#include <numeric>

#include "device/memory_account.h"
#include "net/net.h"
#include "net/plan/plan.h"
#include "proto/net.pb.h"
#include "support.h"

namespace crema::tests {
namespace shared_weights_test {

const char* const kText = R"(
  layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 16 dim: 12 dim: 12 } } }
  layer { name: "c1" type: "Convolution" bottom: "x" top: "c1"
    convolution_param { num_output: 32 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "n" type: "BatchNorm" bottom: "c1" top: "n" }
  layer { name: "s" type: "Scale" bottom: "n" top: "s" scale_param { bias_term: true } }
  layer { name: "r" type: "ReLU" bottom: "s" top: "s" }
  layer { name: "c2" type: "Convolution" bottom: "s" top: "c2"
    convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
  layer { name: "fc" type: "InnerProduct" bottom: "c2" top: "fc"
    inner_product_param { num_output: 50 weight_filler { type: "xavier" } } })";

std::unique_ptr<Net> open(Context& context, NetOptions options, const char* text = kText) {
  NetParameter net;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &net));
  options.state.set_phase(TEST);
  return std::make_unique<Net>(context, net, options);
}

std::vector<float> forward(Context& context, Net& net, uint64_t pass) {
  std::vector<float> values(static_cast<size_t>(net.input("x").shape().count()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 11) / 11;
  net.set_input("x", values.data());
  net.forward(pass);
  return to_floats(context, net.outputs()[0].value);
}

void expect_stored_once(Device device, Precision precision) {
  Context first_context(device), second_context(device);
  NetOptions options;
  options.precision = precision;
  auto first = open(first_context, options);
  const std::vector<float> wanted = forward(first_context, *first, 0);
  first_context.synchronize();
  const size_t alone = second_context.memory()->taken();
  options.weights_of = first.get();
  auto second = open(second_context, options);
  EXPECT_EQ(forward(second_context, *second, 0), wanted);

  ASSERT_EQ(first->parameters().size(), second->parameters().size());
  for (size_t i = 0; i < first->parameters().size(); ++i) {
    EXPECT_EQ(first->parameters()[i].data.raw(), second->parameters()[i].data.raw());
    EXPECT_EQ(first->parameters()[i].half.raw(), second->parameters()[i].half.raw());
  }
  ASSERT_EQ(first->plan().folded.size(), 1u);
  EXPECT_EQ(first->plan().folded, second->plan().folded);
  const MemoryKinds kinds = first->memory();
  const size_t weights = kinds.parameters + kinds.halves + first->plan().folded_bytes();
  EXPECT_EQ(second_context.memory()->taken() - alone + weights,
            first_context.memory()->taken() - alone);

  // A change of either counts for both, and for copies.
  second->change_parameters([&] {
    for (Parameter& parameter : second->parameters()) {
      const std::vector<float> zeros(static_cast<size_t>(parameter.shape.count()));
      from_floats(second_context, zeros.data(), parameter.data);
    }
  });
  EXPECT_EQ(forward(first_context, *first, 1), std::vector<float>(wanted.size()));
  first.reset();
  EXPECT_EQ(forward(second_context, *second, 1), std::vector<float>(wanted.size()));
}

TEST(SharedWeights, AreStoredOnce) { expect_stored_once(Device::cpu, Precision::fp32); }

TEST(SharedWeights, AreStoredOnceOnAGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << gpu_problem();
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16})
    expect_stored_once(Device::gpu, precision);
}

// Plans of one net share copies, too.
TEST(SharedWeights, FoldedOnceForAllShapes) {
  Context context(Device::cpu);
  context.implementation = "plain";  // whose weights have one format
  const auto net = open(context, {}, R"(
    layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 16 dim: 12 dim: 12 } } }
    layer { name: "c" type: "Convolution" bottom: "x" top: "c"
      convolution_param { num_output: 32 kernel_size: 3 weight_filler { type: "xavier" } } }
    layer { name: "n" type: "BatchNorm" bottom: "c" top: "n" })");
  const std::vector<float> wanted = forward(context, *net, 0);
  const auto copies = net->plan().folded;
  ASSERT_EQ(copies.size(), 1u);
  net->reshape("x", {2, 16, 5, 5});
  forward(context, *net, 1);
  EXPECT_EQ(net->plan().folded, copies);
  EXPECT_EQ(copies[0].use_count(), 3);  // two plans, and this
  net->reshape("x", {1, 16, 12, 12});
  EXPECT_EQ(forward(context, *net, 2), wanted);
}

TEST(SharedWeights, NeedTheSameNet) {
  Context context(Device::cpu);
  const auto net = open(context, {});
  NetOptions options;
  options.weights_of = net.get();
  expect_part(error_of([&] {
                open(context, options, R"(
    layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 16 } } }
    layer { name: "fc" type: "InnerProduct" bottom: "x" top: "fc" inner_product_param { num_output: 50 } })");
              }),
              "the nets are not the same");
}

}  // namespace shared_weights_test
}  // namespace crema::tests
