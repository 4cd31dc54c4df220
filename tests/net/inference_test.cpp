// Plans without gradients: what they fold into convolutions and fully connected layers, that the
// folded weights follow the net's, and that passes which a GPU replays compute the same.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "device/memory_account.h"
#include "net/net.h"
#include "net/plan/plan.h"
#include "support.h"

namespace crema::tests {
namespace inference_test {

struct FoldCase {
  const char *name, *text;
  const char* step;  // a step that the plan must have
};

const char* kInputs =
    R"(layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 16 dim: 9 dim: 8 } } })";

const FoldCase kCases[] = {
    {"convolution_batch_norm_scale_relu", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 16 kernel_size: 3 bias_term: false weight_filler { type: "xavier" } } }
      layer { name: "n" type: "BatchNorm" bottom: "c" top: "c" }
      layer { name: "s" type: "Scale" bottom: "c" top: "c" scale_param { bias_term: true filler { type: "gaussian" mean: 1 std: 0.3 } bias_filler { value: 0.2 } } }
      layer { name: "r" type: "ReLU" bottom: "c" top: "y" })",
     "Convolution+ReLU = c + n + s + r"},
    {"convolution_with_bias", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } bias_filler { value: 0.3 } } }
      layer { name: "n" type: "BatchNorm" bottom: "c" top: "y" batch_norm_param { eps: 0.01 } })",
     "Convolution = c + n"},
    {"groups", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 16 kernel_size: 3 group: 4 weight_filler { type: "xavier" } } }
      layer { name: "n" type: "BatchNorm" bottom: "c" top: "c" batch_norm_param { scale_bias: true scale_filler { value: 1.5 } } }
      layer { name: "r" type: "ReLU" bottom: "c" top: "y" relu_param { negative_slope: 0.1 } })",
     "Convolution+ReLU = c + n + r"},
    {"depthwise", R"(
      layer { name: "c" type: "ConvolutionDepthwise" bottom: "x" top: "c" convolution_param { num_output: 16 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "xavier" } } }
      layer { name: "n" type: "BatchNorm" bottom: "c" top: "c" }
      layer { name: "s" type: "Scale" bottom: "c" top: "y" scale_param { filler { value: 0.7 } } })",
     "ConvolutionDepthwise = c + n + s"},
    {"fully_connected", R"(
      layer { name: "i" type: "InnerProduct" bottom: "x" top: "i" inner_product_param { num_output: 10 bias_term: false weight_filler { type: "xavier" } } }
      layer { name: "n" type: "BatchNorm" bottom: "i" top: "i" }
      layer { name: "s" type: "Scale" bottom: "i" top: "i" scale_param { bias_term: true filler { value: -1.2 } } }
      layer { name: "r" type: "ReLU" bottom: "i" top: "y" })",
     "InnerProduct+ReLU = i + n + s + r"},
    {"bn_of_a_fork", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 16 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "n" type: "BN" bottom: "c" top: "y" bn_param { slope_filler { value: 1.3 } bias_filler { value: 0.1 } } })",
     "Convolution = c + n"},
    {"bias", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 16 kernel_size: 1 bias_term: false weight_filler { type: "xavier" } } }
      layer { name: "b" type: "Bias" bottom: "c" top: "y" bias_param { filler { value: 0.4 } } })",
     "Convolution = c + b"},
    {"residual", R"(
      layer { name: "c0" type: "Convolution" bottom: "x" top: "c0" convolution_param { num_output: 16 kernel_size: 1 bias_term: false weight_filler { type: "xavier" } } }
      layer { name: "n0" type: "BatchNorm" bottom: "c0" top: "c0" }
      layer { name: "c1" type: "Convolution" bottom: "x" top: "c1" convolution_param { num_output: 16 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "xavier" } } }
      layer { name: "n1" type: "BatchNorm" bottom: "c1" top: "c1" }
      layer { name: "s1" type: "Scale" bottom: "c1" top: "c1" scale_param { bias_term: true } }
      layer { name: "sum" type: "Eltwise" bottom: "c0" bottom: "c1" top: "sum" }
      layer { name: "r" type: "ReLU" bottom: "sum" top: "sum" }
      layer { name: "c2" type: "Convolution" bottom: "sum" top: "c2" convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
      layer { name: "n2" type: "BatchNorm" bottom: "c2" top: "c2" }
      layer { name: "sum2" type: "Eltwise" bottom: "sum" bottom: "c2" top: "y" })",
     "Convolution+Sum+ReLU = c0 + n0 + sum + r"},
    {"linear_bottleneck", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 16 kernel_size: 1 bias_term: false weight_filler { type: "xavier" } } }
      layer { name: "n" type: "BatchNorm" bottom: "c" top: "c" }
      layer { name: "sum" type: "Eltwise" bottom: "x" bottom: "c" top: "y" })",
     "Convolution+Sum = c + n + sum"},
    {"in_front_of_a_pooling", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 32 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
      layer { name: "n" type: "BatchNorm" bottom: "c" top: "c" }
      layer { name: "r" type: "ReLU" bottom: "c" top: "c" }
      layer { name: "p" type: "Pooling" bottom: "c" top: "y" pooling_param { kernel_size: 2 stride: 2 } })",
     "c + n + r"},
    // Weights that kernels pack, on a CPU.
    {"three_by_three", R"(
      layer { name: "c1" type: "Convolution" bottom: "x" top: "c1" convolution_param { num_output: 32 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "c2" type: "Convolution" bottom: "c1" top: "c2" convolution_param { num_output: 32 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } bias_filler { value: 0.1 } } }
      layer { name: "r" type: "ReLU" bottom: "c2" top: "y" relu_param { negative_slope: 0.2 } })",
     "Convolution+ReLU = c2 + r"},
    {"three_by_three_without_bias", R"(
      layer { name: "c1" type: "Convolution" bottom: "x" top: "c1" convolution_param { num_output: 32 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "c2" type: "Convolution" bottom: "c1" top: "y" convolution_param { num_output: 40 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "xavier" } } })",
     "Convolution = c2"},
    {"three_by_three_residual", R"(
      layer { name: "c1" type: "Convolution" bottom: "x" top: "c1" convolution_param { num_output: 32 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "c2" type: "Convolution" bottom: "c1" top: "c2" convolution_param { num_output: 32 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "xavier" } } }
      layer { name: "n" type: "BatchNorm" bottom: "c2" top: "c2" }
      layer { name: "s" type: "Scale" bottom: "c2" top: "c2" scale_param { bias_term: true filler { value: 1.2 } bias_filler { value: 0.2 } } }
      layer { name: "sum" type: "Eltwise" bottom: "c1" bottom: "c2" top: "sum" }
      layer { name: "r" type: "ReLU" bottom: "sum" top: "y" })",
     "c2 + n + s + sum + r"},
    // Not folded: another reader; factors that forward clips; positions that have their own factors.
    {"two_readers", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 16 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "n" type: "BatchNorm" bottom: "c" top: "n" }
      layer { name: "t" type: "TanH" bottom: "c" top: "t" }
      layer { name: "e" type: "Eltwise" bottom: "n" bottom: "t" top: "y" eltwise_param { operation: PROD } })",
     "Convolution = c;"},
    {"clipped_factors", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 16 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "s" type: "Scale" bottom: "c" top: "y" scale_param { max_value: 0.5 } })",
     "Convolution = c;"},
    {"factors_of_positions", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 16 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "s" type: "Scale" bottom: "c" top: "y" scale_param { axis: 1 num_axes: -1 } })",
     "Convolution = c;"},
    // A pass may change these: the first Scale clips its factors.
    {"shared_factors", R"(
      layer { name: "s1" type: "Scale" bottom: "x" top: "x1" param { name: "s" } scale_param { max_value: 0.9 } }
      layer { name: "c" type: "Convolution" bottom: "x1" top: "c" convolution_param { num_output: 16 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "s2" type: "Scale" bottom: "c" top: "y" param { name: "s" } })",
     "Convolution = c;"},
    {"deconvolution", R"(
      layer { name: "d" type: "Deconvolution" bottom: "x" top: "d" convolution_param { num_output: 8 kernel_size: 2 stride: 2 weight_filler { type: "xavier" } } }
      layer { name: "n" type: "BatchNorm" bottom: "d" top: "y" })",
     "Deconvolution = d;"},
};

const FoldCase& case_named(const std::string& name) {
  return *std::find_if(std::begin(kCases), std::end(kCases),
                       [&](const FoldCase& one) { return one.name == name; });
}

NetParameter parsed(const std::string& text) {
  NetParameter net;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &net));
  return net;
}

struct Runs {
  Context context;
  explicit Runs(Device device) : context(device) {}

  std::unique_ptr<Net> open(const std::string& text, NetOptions options) {
    options.state.set_phase(TEST);
    return std::make_unique<Net>(context, parsed(text), options);
  }
  void set_input(Net& net, uint64_t stream) {
    const Tensor x = net.input("x");
    std::vector<float> values(static_cast<size_t>(x.count()));
    const Random random{7, stream};
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.normal(i));
    net.set_input("x", values.data());
  }
  // Statistics as after training: a number, sums of it, and positive variances.
  void set_parameters(Net& net, uint64_t stream) {
    for (Parameter& parameter : net.parameters()) {
      std::vector<float> values = to_floats(context, parameter.data);
      const Random random{stream, mix(parameter.filler_stream, 3)};
      for (size_t i = 0; i < values.size(); ++i) {
        const auto normal = static_cast<float>(random.normal(i));
        const bool is_number = parameter.shape.count() == 1;
        if (parameter.learned) {
          values[i] += 0.2f * normal;
        } else {
          values[i] = is_number ? 2.5f : 0.5f + 0.4f * std::abs(normal);
        }
      }
      from_floats(context, values.data(), parameter.data);
    }
    net.parameters_changed();
  }
  std::vector<float> pass(Net& net, uint64_t number) {
    net.forward(number);
    return to_floats(context, net.outputs().at(0).value);
  }
};

void expect_near(const std::vector<float>& a, const std::vector<float>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  double scale = 0, error = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    scale = std::max(scale, std::abs(static_cast<double>(a[i])));
    error = std::max(error, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  EXPECT_GT(scale, 0.01);
  EXPECT_LE(error, tolerance * scale);
}

void expect_alike(const FoldCase& c, Device device, Precision precision, double tolerance) {
  SCOPED_TRACE(name_of(precision));
  Runs runs(device);
  const std::string text = cat(kInputs, c.text);
  NetOptions plain, planned;
  plain.fuse = false;
  planned.precision = precision;
  const std::unique_ptr<Net> reference = runs.open(text, plain), net = runs.open(text, planned);
  expect_part(net->dump_plan(), c.step);
  // Passes 1 to 4 are replayed on a GPU. New weights and inputs must reach the folded ones.
  for (uint64_t pass = 0; pass < 5; ++pass) {
    SCOPED_TRACE(cat("pass ", pass));
    for (Net* const one : {reference.get(), net.get()}) {
      runs.set_input(*one, pass);
      if (pass != 3) runs.set_parameters(*one, pass / 2);
    }
    expect_near(runs.pass(*reference, pass), runs.pass(*net, pass), tolerance);
  }
}

class FoldTest : public testing::TestWithParam<FoldCase> {};

TEST_P(FoldTest, KeepsTheResult) { expect_alike(GetParam(), Device::cpu, Precision::fp32, 1e-5); }

TEST_P(FoldTest, KeepsTheResultOnAGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU";
  expect_alike(GetParam(), Device::gpu, Precision::fp32, 1e-5);
  expect_alike(GetParam(), Device::gpu, Precision::tf32, 3e-3);
  expect_alike(GetParam(), Device::gpu, Precision::bf16, 3e-2);
  expect_alike(GetParam(), Device::gpu, Precision::fp16, 4e-3);
}

INSTANTIATE_TEST_SUITE_P(Nets, FoldTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// As a solver's test net: it owns nothing, and the training net's forward passes change the
// statistics.
TEST(Fold, FollowsTheNetThatOwnsTheWeights) {
  for (const Device device : {Device::cpu, Device::gpu}) {
    if (device == Device::gpu && gpu_count() == 0) continue;
    Runs runs(device);
    const std::string text = cat(kInputs, kCases[0].text);
    NetOptions training, testing, plain;
    training.state.set_phase(TRAIN);
    Net owner(runs.context, parsed(text), training);
    testing.share = plain.share = &owner;
    plain.fuse = false;
    const std::unique_ptr<Net> test = runs.open(text, testing), reference = runs.open(text, plain);
    for (uint64_t pass = 0; pass < 3; ++pass) {
      for (Net* const one : {&owner, test.get(), reference.get()}) runs.set_input(*one, pass);
      owner.forward(pass);
      expect_near(runs.pass(*reference, pass), runs.pass(*test, pass), 1e-5);
    }
  }
}

TEST(Fold, OnlyWithoutGradients) {
  Runs runs(Device::cpu);
  NetOptions options;
  options.backward = true;
  const std::string text = cat(kInputs, kCases[0].text);
  NetOptions kept;
  kept.keep_blobs = true;
  EXPECT_TRUE(runs.open(text, options)->plan().foldings.empty());
  EXPECT_TRUE(runs.open(text, kept)->plan().foldings.empty());
  EXPECT_EQ(runs.open(text, {})->plan().foldings.size(), 1u);
}

// The packed copies of weights are those of nets that own them and compute no gradients.
TEST(Pack, OnlyWhereWeightsStay) {
  Runs runs(Device::cpu);
  const std::string text = cat(kInputs, case_named("three_by_three").text);
  const auto packed_bytes = [](Net& net) {
    size_t bytes = 0;
    for (const Folding& folding : net.plan().foldings) bytes += folding.weights.packed_bytes;
    return bytes;
  };
  const std::unique_ptr<Net> net = runs.open(text, {});
  const bool here = net->dump_plan().find("winograd") != std::string::npos;
  if (!here) GTEST_SKIP() << "no kernel of this build packs weights";
  EXPECT_EQ(packed_bytes(*net), 36u * 32 * 32 * 4);
  NetOptions training, sharing, off, whole;
  training.backward = true;
  sharing.share = net.get();
  off.pack = false;
  whole.fuse = false;
  for (const NetOptions& options : {training, sharing, off, whole})
    EXPECT_EQ(packed_bytes(*runs.open(text, options)), 0u);
}

// Shapes that come back find their plan, which is as it was. The plans of one net have kernels that
// want weights in different forms.
void expect_plans_back(const FoldCase& c) {
  for (const Device device : {Device::cpu, Device::gpu}) {
    if (device == Device::gpu && gpu_count() == 0) continue;
    Runs runs(device);
    const std::string text = cat(kInputs, c.text);
    NetOptions plain;
    plain.fuse = false;
    const std::unique_ptr<Net> net = runs.open(text, {}), reference = runs.open(text, plain);
    const Shape large{4, 16, 12, 10}, small{1, 16, 9, 8};
    std::vector<const Plan*> plans;
    uint64_t pass = 0;
    for (const Shape& shape : {large, small, large, large, large, small, small, small, large}) {
      for (Net* const one : {net.get(), reference.get()}) {
        one->reshape("x", shape);
        runs.set_input(*one, pass);
        if (pass == 5) runs.set_parameters(*one, 5);
      }
      expect_near(runs.pass(*reference, pass), runs.pass(*net, pass), 1e-5);
      plans.push_back(&net->plan());
      ++pass;
    }
    EXPECT_NE(plans[0], plans[1]);
    for (const int at : {2, 3, 4, 8}) EXPECT_EQ(plans[at], plans[0]) << at;
    for (const int at : {5, 6, 7}) EXPECT_EQ(plans[at], plans[1]) << at;
  }
}

TEST(EarlierPlans, ServeShapesThatComeBack) {
  expect_plans_back(kCases[0]);
  expect_plans_back(case_named("three_by_three"));
}

// A plan that does not fit is refused every time, and the net goes on with the one before.
TEST(EarlierPlans, AreNoneThatDidNotFit) {
  Runs runs(Device::cpu);
  const std::unique_ptr<Net> net = runs.open(cat(kInputs, kCases[0].text), {});
  const Shape small{2, 16, 9, 8}, large{4000, 16, 90, 80};
  runs.context.memory()->limit(runs.context.memory()->taken() + (size_t{8} << 20), "a test");
  for (int i = 0; i < 3; ++i) {
    net->reshape("x", large);
    expect_part(error_of([&] { net->input("x"); }), "are allowed");
    net->reshape("x", small);
    runs.set_input(*net, 1);
    EXPECT_EQ(runs.pass(*net, 0).size(), 2u * 16 * 7 * 6);
  }
}

// What depends on the number of the pass differs from pass to pass, replayed or not.
TEST(Replay, CountsPasses) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU";
  Runs runs(Device::gpu);
  const std::string text = cat(
      kInputs,
      R"(layer { name: "n" type: "Noise" bottom: "x" top: "y" noise_param { filler_param { type: "gaussian" std: 1 } } })");
  NetOptions direct;
  direct.capture = false;
  const std::unique_ptr<Net> replayed = runs.open(text, {}), reference = runs.open(text, direct);
  for (Net* const one : {replayed.get(), reference.get()}) runs.set_input(*one, 1);
  for (const uint64_t pass : {0, 1, 2, 3, 9, 10, 2}) {
    EXPECT_EQ(runs.pass(*replayed, pass), runs.pass(*reference, pass)) << pass;
  }
}

}  // namespace inference_test
}  // namespace crema::tests
