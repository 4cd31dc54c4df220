// The sums of a convolution's channels, which batch normalization takes from the convolution's
// kernel, and the scale and shift that the next convolution takes in the place of its result.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "device/cudnn.h"
#include "net/graph/graph_builder.h"
#include "net/net.h"
#include "net/plan/plan.h"
#include "support.h"

namespace crema::tests {
namespace sums_test {

// The first BatchNorm has stored statistics, the second does not follow a convolution directly, the
// third shares one with the fourth.
const char* kNet = R"(
  layer { name: "in" type: "DummyData" top: "x" top: "label" dummy_data_param {
    shape { dim: 8 dim: 64 dim: 14 dim: 14 } shape { dim: 8 }
    data_filler { type: "gaussian" } data_filler { value: 1 } } }
  layer { name: "a" type: "Convolution" bottom: "x" top: "a" convolution_param { num_output: 64 kernel_size: 1 bias_term: false weight_filler { type: "msra" } } }
  layer { name: "na" type: "BatchNorm" bottom: "a" top: "na" batch_norm_param { use_global_stats: true } }
  layer { name: "ra" type: "ReLU" bottom: "na" top: "ra" }
  layer { name: "nb" type: "BatchNorm" bottom: "ra" top: "nb" }
  layer { name: "c" type: "Convolution" bottom: "nb" top: "c" convolution_param { num_output: 128 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "msra" } } }
  layer { name: "nc" type: "BatchNorm" bottom: "c" top: "nc" }
  layer { name: "sc" type: "Scale" bottom: "nc" top: "sc" scale_param { bias_term: true } }
  layer { name: "rc" type: "ReLU" bottom: "sc" top: "rc" }
  layer { name: "nd" type: "BatchNorm" bottom: "c" top: "nd" }
  layer { name: "e" type: "Convolution" bottom: "rc" bottom: "nd" top: "e1" top: "e2" convolution_param { num_output: 64 kernel_size: 1 bias_term: false weight_filler { type: "msra" } } }
  layer { name: "ne" type: "BatchNorm" bottom: "e1" top: "ne" }
  layer { name: "sum" type: "Eltwise" bottom: "ne" bottom: "e2" top: "sum" }
  layer { name: "g" type: "Convolution" bottom: "sum" top: "g" convolution_param { num_output: 64 kernel_size: 1 bias_term: false weight_filler { type: "msra" } } }
  layer { name: "ng" type: "BatchNorm" bottom: "g" top: "ng" }
  layer { name: "sg" type: "Scale" bottom: "ng" top: "sg" scale_param { bias_term: true } }
  layer { name: "rg" type: "ReLU" bottom: "sg" top: "rg" }
  layer { name: "h" type: "Convolution" bottom: "rg" top: "h" convolution_param { num_output: 64 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "msra" } } }
  layer { name: "nh" type: "BatchNorm" bottom: "h" top: "nh" }
  layer { name: "ip" type: "InnerProduct" bottom: "nh" top: "ip" inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";

NetParameter message() {
  NetParameter net;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kNet, &net));
  return net;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Who would hand sums to whom.
Pairs pairs(bool repeatable, bool fuse) {
  Context context(Device::cpu);
  context.repeatable = repeatable;
  GraphOptions graph_options;
  graph_options.training = true;
  PlanOptions options;
  options.backward = true;
  options.fuse = fuse;
  const Plan plan(context, build_graph(context, message(), graph_options), options);
  Pairs pairs;
  for (const PlanNode& node : plan.nodes) {
    for (int maker : node.edges.statistics_makers) {
      if (maker >= 0) pairs.emplace_back(plan.nodes[maker].message.name(), node.message.name());
    }
  }
  return pairs;
}

TEST(Sums, AreAskedForByOneBatchNormOfABlob) {
  const Pairs found = pairs(false, true);
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0].second, "nb");  // of a layer that has none to give
  EXPECT_EQ(found[1], (std::pair<std::string, std::string>{"c", "nc"}));
  EXPECT_EQ(found[2], (std::pair<std::string, std::string>{"e", "ne"}));
  EXPECT_TRUE(pairs(true, true).empty());
  EXPECT_TRUE(pairs(false, false).empty());
}

// On a GPU in float16, where cuDNN's convolutions can give and take them: without tuning they do.
TEST(Sums, LeadToTheSameGradients) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  if (!has_cudnn()) GTEST_SKIP() << "no cuDNN in this build";
  struct Result {
    std::vector<double> gradients, statistics;
  };
  const auto run = [](bool repeatable, Recompute recompute) {
    Context context(Device::gpu);
    context.repeatable = repeatable;
    context.tune(TuneMode::off);
    context.implementation = "cudnn";  // for convolutions as small as these our own are faster
    NetOptions options;
    options.state.set_phase(TRAIN);
    options.precision = Precision::fp16;
    options.overlap = false;
    options.recompute = recompute;
    Net net(context, message(), options);
    for (uint64_t pass = 0; pass < 2; ++pass) {
      net.forward(pass);
      net.backward();
    }
    const std::string dump = net.dump_plan();
    const auto has = [&](const char* part) { return dump.find(part) != std::string::npos; };
    EXPECT_EQ(has("hands on the sums of its channels"), !repeatable) << dump;
    EXPECT_EQ(has("hands on scale and shift"), !repeatable && recompute == Recompute::all) << dump;
    Result result;
    for (const Parameter& p : net.parameters()) {
      std::vector<double>* const list = p.learned ? &result.gradients : &result.statistics;
      for (double value : to_doubles(context, p.learned ? p.diff : p.data)) list->push_back(value);
    }
    return result;
  };
  const Result expected = run(true, Recompute::off);
  const auto near = [](const std::vector<double>& got, const std::vector<double>& expected,
                       double tolerance) {
    ASSERT_EQ(got.size(), expected.size());
    ASSERT_FALSE(got.empty());
    double maximum = 0, worst = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      maximum = std::max(maximum, std::abs(expected[i]));
      const double difference = std::abs(got[i] - expected[i]);
      worst = difference <= worst ? worst : difference;  // a NaN is kept
    }
    EXPECT_GT(maximum, 0);
    EXPECT_LE(worst, tolerance * maximum);
  };
  for (const Recompute recompute : {Recompute::off, Recompute::all}) {
    const Result got = run(false, recompute);
    near(got.statistics, expected.statistics, 2e-3);
    near(got.gradients, expected.gradients, 2e-2);
  }
}

}  // namespace sums_test
}  // namespace crema::tests
