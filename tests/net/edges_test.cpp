// What passes along edges besides blobs: the sums of a convolution's channels, which batch normalization takes
// from the convolution's kernel, the scale and shift that the next convolution takes in the place of its result,
// and integers.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "device/cudnn.h"
#include "net/graph/graph_builder.h"
#include "net/net.h"
#include "net/plan/plan.h"
#include "support.h"

namespace crema::tests {
namespace edges_test {

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

// Quantized convolutions of all kinds. b rounds a as c does, and e as d does; p, the sums and the end read values
// themselves; f rounds c differently from d.
const char* kQuantizedNet = R"(
  layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 4 dim: 16 dim: 11 dim: 10 } } }
  layer { name: "a" type: "Convolution" bottom: "x" top: "a" convolution_param { num_output: 32 kernel_size: 3 pad: 1 weight_filler { type: "msra" } bias_filler { type: "gaussian" std: 0.1 } } QUANTIZED }
  layer { name: "ra" type: "ReLU" bottom: "a" top: "a" }
  layer { name: "b" type: "Convolution" bottom: "a" top: "b" convolution_param { num_output: 24 kernel_size: 1 weight_filler { type: "msra" } } UNSIGNED }
  layer { name: "rb" type: "ReLU" bottom: "b" top: "b" }
  layer { name: "c" type: "ConvolutionDepthwise" bottom: "b" top: "c" convolution_param { num_output: 24 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } UNSIGNED }
  layer { name: "d" type: "Convolution" bottom: "c" top: "d" convolution_param { num_output: 32 kernel_size: 1 weight_filler { type: "msra" } } QUANTIZED }
  layer { name: "f" type: "Convolution" bottom: "c" top: "f" convolution_param { num_output: 32 kernel_size: 1 weight_filler { type: "msra" } } COARSE }
  layer { name: "s" type: "Eltwise" bottom: "d" bottom: "a" top: "s" }
  layer { name: "rs" type: "ReLU" bottom: "s" top: "s" }
  layer { name: "p" type: "Pooling" bottom: "s" top: "p" pooling_param { kernel_size: 2 stride: 2 } }
  layer { name: "e" type: "Convolution" bottom: "s" top: "e" convolution_param { num_output: 20 kernel_size: 3 stride: 2 pad: 1 group: 2 weight_filler { type: "msra" } } UNSIGNED }
  layer { name: "g" type: "Convolution" bottom: "e" top: "g" convolution_param { num_output: 9 kernel_size: 1 weight_filler { type: "msra" } } QUANTIZED })";

// With these scales hardly a sum is halfway between two integers, where rounding errors decide.
std::string quantized(std::string text) {
  const auto with = [&](const std::string& word, const std::string& fields) {
    for (size_t at; (at = text.find(word)) != std::string::npos;)
      text.replace(at, word.size(),
                   "quantization_param { precision: DYNAMIC_FIXED_POINT " + fields +
                       " scale_params: 57.31 bw_layer_in: 8 bw_params: 8 }");
  };
  with("QUANTIZED", "scale_in: 23.17 is_negative_input: true");
  with("UNSIGNED", "scale_in: 49.73");
  with("COARSE", "scale_in: 11.39 is_negative_input: true");
  return text;
}

// outputs: of the net on x; dump: its plan.
struct Outputs {
  std::vector<std::vector<float>> outputs;
  std::string dump;
};
Outputs outputs_of_quantized(Device device, Precision precision, bool keep_blobs,
                             size_t cache_bytes) {
  NetParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(quantized(kQuantizedNet), &message));
  Context context(device);
  NetOptions options;
  options.state.set_phase(TEST);
  options.precision = precision;
  options.keep_blobs = keep_blobs;
  options.micro_batches = cache_bytes > 0;
  options.cache_bytes = cache_bytes;
  Net net(context, message, options);
  std::vector<float> values(static_cast<size_t>(net.input("x").count()));
  const Random random{5, 3};
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.normal(i));
  Outputs found;
  for (int pass = 0; pass < 2; ++pass) {
    net.set_input("x", values.data());
    net.forward(pass);
  }
  for (const Net::Output& output : net.outputs())
    found.outputs.push_back(to_floats(context, output.value));
  found.dump = net.dump_plan();
  return found;
}

// Most values are equal: those that rounding errors take to another integer differ by its step.
void expect_nearly(const Outputs& got, const Outputs& want, double share) {
  ASSERT_EQ(got.outputs.size(), want.outputs.size());
  for (size_t k = 0; k < want.outputs.size(); ++k) {
    double largest = 0, different = 0;
    for (const float value : want.outputs[k]) largest = std::max<double>(largest, std::fabs(value));
    ASSERT_GT(largest, 0.5);
    for (size_t i = 0; i < want.outputs[k].size(); ++i) {
      const double difference = std::fabs(got.outputs[k][i] - want.outputs[k][i]);
      EXPECT_LE(difference, 0.06 * largest) << k << " " << i;
      different += difference > 2e-6 * largest;
    }
    EXPECT_LE(different, share * static_cast<double>(want.outputs[k].size())) << k;
  }
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

TEST(RoundedEdges, LeadToTheSameOutputs) {
  for (const size_t cache_bytes : {0, 60000}) {
    const Outputs want = outputs_of_quantized(Device::cpu, Precision::fp32, true, 0),
                  got = outputs_of_quantized(Device::cpu, Precision::fp32, false, cache_bytes);
    EXPECT_EQ(count_of(want.dump, "as integers of 8 bits"), 0u);
    expect_nearly(got, want, 0.02);
    if (count_of(got.dump, "onednn_int8") == 0) continue;
    // oneDNN writes only the values of a and of the sum, and c is read with two steps.
    EXPECT_EQ(count_of(got.dump, "as integers of 8 bits; the top is never written"), 2u)
        << got.dump;
    EXPECT_EQ(count_of(got.dump, "as integers of 8 bits"), 2u) << got.dump;
    EXPECT_EQ(count_of(got.dump, "samples at a time"), cache_bytes > 0 ? 1u : 0u) << got.dump;
  }
}

TEST(RoundedEdges, LeadToTheSameOutputsOnAGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const Outputs want = outputs_of_quantized(Device::gpu, Precision::fp32, false, 0);
  EXPECT_EQ(count_of(want.dump, "as integers of 8 bits"), 0u);  // its images are row-major
  for (const Precision precision : {Precision::tf32, Precision::fp16, Precision::bf16}) {
    const Outputs got = outputs_of_quantized(Device::gpu, precision, false, 0);
    expect_nearly(got, want, precision == Precision::tf32 ? 0.02 : 1);
    EXPECT_EQ(count_of(got.dump, "as integers of 8 bits; the top is never written"), 2u)
        << got.dump;
    EXPECT_EQ(count_of(got.dump, "as integers of 8 bits"), 4u) << got.dump;
  }
}

}  // namespace edges_test
}  // namespace crema::tests
