// How much memory a net takes, on a net whose sums are known; and what happens when it is not
// there.
#include "net/plan/memory_use.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "device/memory_account.h"
#include "net/net.h"
#include "net/plan/arena.h"
#include "support.h"

namespace crema::tests {
namespace memory_use_test {

// Every blob has a multiple of 64 floats, as the planner's places do.
NetParameter two_products(int batch) {
  NetParameter net;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      cat(R"(name: "two"
  layer { name: "data" type: "DummyData" top: "x" top: "y" dummy_data_param {
          shape { dim: )",
          batch, " dim: 512 } shape { dim: ", batch, R"( dim: 64 } } }
  layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "h"
          inner_product_param { num_output: 256 weight_filler { type: "xavier" } bias_term: false } }
  layer { name: "sigmoid" type: "Sigmoid" bottom: "h" top: "s" }
  layer { name: "ip2" type: "InnerProduct" bottom: "s" top: "z"
          inner_product_param { num_output: 64 weight_filler { type: "xavier" } bias_term: false } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "z" bottom: "y" top: "loss" })"),
      &net));
  return net;
}

NetOptions options_for(Phase phase, bool reuse = true) {
  NetOptions options;
  options.state.set_phase(phase);
  options.reuse_memory = reuse;
  options.fuse = false;
  return options;
}

constexpr size_t kWeights = (512 * 256 + 256 * 64) * sizeof(float);

TEST(MemoryUse, TheBatchIsThatOfTheDataNotOfALearnedBlob) {
  NetParameter net;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(layer { name: "prior" type: "Parameter" top: "p" parameter_param { shape { dim: 7 } } }
         layer { name: "silence" type: "Silence" bottom: "p" })",
      &net));
  net.MergeFrom(two_products(64));
  Context context(Device::cpu);
  const BatchSource source = batch_source(Net(context, net, options_for(TRAIN)).graph());
  EXPECT_EQ(source.size, 64);
}

TEST(MemoryUse, KindsAreWhatTheNetIsMadeOf) {
  Context context(Device::cpu);
  Net net(context, two_products(64), options_for(TRAIN));
  const MemoryKinds kinds = net.memory();
  EXPECT_EQ(kinds.parameters, kWeights);
  EXPECT_EQ(kinds.diffs, kWeights);
  EXPECT_EQ(kinds.halves + kinds.history + kinds.resident, 0u);
  EXPECT_EQ(kinds.total(), kinds.arena() + kinds.persistent + 2 * kWeights);
  // Nothing else is taken: what the net said before its first pass is what it has after it.
  net.forward(0);
  net.backward();
  EXPECT_EQ(context.memory()->taken(), kinds.total());
  expect_part(describe(kinds), "weights 576.0 KiB, gradients of weights 576.0 KiB");
  EXPECT_EQ(describe(kinds).find("history"), std::string::npos);

  const MemoryKinds test = Net(context, two_products(64), options_for(TEST)).memory();
  EXPECT_EQ(test.diffs, 0u);
  EXPECT_LT(test.blobs, kinds.blobs);
}

TEST(MemoryUse, OnAGpuToo) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  const size_t before = context.memory()->taken();
  EXPECT_GT(before, 0u);  // of the handles
  for (Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16}) {
    SCOPED_TRACE(name_of(precision));
    NetOptions options = options_for(TRAIN);
    options.precision = precision;
    Net net(context, two_products(64), options);
    const MemoryKinds kinds = net.memory();
    EXPECT_EQ(kinds.halves, precision == Precision::fp16 ? kWeights / 2 : 0);
    net.forward(0);
    net.backward();
    EXPECT_EQ(context.memory()->taken() - before, kinds.total());
  }
  EXPECT_EQ(context.memory()->taken(), before);
  context.memory()->limit(before + 2'000'000, "-gpu_memory 72MB");
  expect_part(error_of([&] { const Net net(context, two_products(1024), options_for(TRAIN)); }),
              "are allowed (-gpu_memory 72MB): a batch of ");
  EXPECT_EQ(context.memory()->taken(), before);
}

TEST(MemoryUse, LayersAddUpToTheNet) {
  Context context(Device::cpu);
  Net net(context, two_products(64), options_for(TRAIN, false));
  const size_t row = 64 * sizeof(float);  // of one value a sample
  size_t sum = 0, workspace = 0;
  for (const LayerMemory& layer : net.memory_by_layer()) {
    SCOPED_TRACE(layer.layers);
    sum += layer.blobs + layer.gradients;
    workspace = std::max(workspace, layer.workspace);
    EXPECT_LE(layer.kept, layer.blobs);
    if (layer.layers == "data") {
      EXPECT_EQ(layer.blobs, (512 + 64) * row);
    }
    if (layer.layers == "ip1") {
      EXPECT_EQ(layer.blobs, 256 * row);
      EXPECT_EQ(layer.parameters, 512 * 256 * sizeof(float));
      EXPECT_EQ(layer.gradients, 0u);  // none flows to the data
    }
    if (layer.layers == "ip2") {
      EXPECT_EQ(layer.gradients, 256 * row);
    }
    if (layer.layers == "loss") {
      EXPECT_GE(layer.gradients, 64 * row);
    }
  }
  const MemoryKinds kinds = net.memory();
  // Each place is rounded up to 256 bytes; only the loss and its gradient are smaller than that.
  EXPECT_NEAR(static_cast<double>(sum + workspace),
              static_cast<double>(kinds.arena() + kinds.persistent), 1024);
}

TEST(MemoryUse, KeptIsWhatBackwardReads) {
  Context context(Device::cpu);
  Net net(context, two_products(64), options_for(TRAIN));
  size_t kept = 0;
  for (const LayerMemory& layer : net.memory_by_layer()) kept += layer.kept;
  EXPECT_GT(kept, 0u);
  Net test(context, two_products(64), options_for(TEST));
  for (const LayerMemory& layer : test.memory_by_layer()) {
    EXPECT_EQ(layer.kept, 0u);
    EXPECT_EQ(layer.gradients, 0u);
  }
}

// The message for a batch under a limit; "" when it fits.
std::string refusal(int batch, size_t limit, int histories = 0) {
  Context context(Device::cpu);
  context.memory()->limit(limit, "-gpu_memory 3MB");
  NetOptions options = options_for(TRAIN);
  options.histories = histories;
  try {
    const Net net(context, two_products(batch), options);
  } catch (const Error& error) {
    EXPECT_EQ(context.memory()->taken(), 0u);  // said before any of it was taken
    return error.what();
  }
  return "";
}

TEST(MemoryLimit, TheLargestBatchThatFitsIsNamed) {
  const size_t limit = 3'000'000;
  EXPECT_EQ(refusal(64, limit), "");
  const std::string message = refusal(1024, limit);
  expect_part(message, "layer \"data\": a batch of 1024 needs ");
  expect_part(message, "2.9 MiB are allowed (-gpu_memory 3MB): a batch of ");
  expect_part(message, "weights 576.0 KiB");
  const size_t at = message.find("): a batch of ") + 14;
  const int fits = std::stoi(message.substr(at));
  EXPECT_GT(fits, 64);
  EXPECT_EQ(refusal(fits, limit), "");
  EXPECT_NE(refusal(fits + 1, limit), "");
  expect_part(refusal(64, 1'000'000), "no batch is small enough");
}

TEST(MemoryLimit, TheSolversHistoryCounts) {
  Context context(Device::cpu);
  const size_t needs = Net(context, two_products(64), options_for(TRAIN)).memory().total();
  EXPECT_EQ(refusal(64, needs), "");
  expect_part(refusal(64, needs, 1), "solver history 576.0 KiB");
  EXPECT_EQ(refusal(64, needs + kWeights, 1), "");
  EXPECT_NE(refusal(64, needs + kWeights, 2), "");
}

TEST(MemoryLimit, ATestNetOnlyPaysForWhatItAdds) {
  Context context(Device::cpu);
  NetOptions options = options_for(TRAIN);
  options.arena = std::make_shared<ArenaPool>();
  Net train(context, two_products(64), options);
  const size_t data = (512 + 64) * 64 * sizeof(float);  // constant: the test net keeps its own
  context.memory()->limit(train.memory().total() + data, "-gpu_memory 2MB");
  options.state.set_phase(TEST);
  options.share = &train;
  Net test(context, two_products(64), options);
  const std::string message =
      error_of([&] { const Net larger(context, two_products(4096), options); });
  expect_part(message, "a batch of 4096 in phase TEST needs ");
  train.forward(0);
  test.forward(0);
}

}  // namespace memory_use_test
}  // namespace crema::tests
