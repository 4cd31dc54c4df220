// The least that a step has to do: operations and bytes, counted by hand.
#include "net/plan/work.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "net/net.h"
#include "net/plan/plan.h"

namespace crema::tests {
namespace work_test {

struct WorkCase {
  const char* name;
  const char* layer;  // x (2, 4, 6, 5) -> y
  double multiply_adds;
  int64_t weights, outputs;  // elements of parameters, of y
  bool keeps_bottom;         // backward reads x
  int64_t read = 2 * 120;    // elements of x that it reads
};

const WorkCase kCases[] = {
    {"convolution",
     R"(type: "Convolution" convolution_param { num_output: 6 kernel_size: 3 group: 2 })",
     2 * 6 * 4 * 3 * 2 * 9, 6 * 2 * 9 + 6, 2 * 6 * 4 * 3, true},
    {"deconvolution", R"(type: "Deconvolution" convolution_param { num_output: 3 kernel_size: 2 })",
     2 * 4 * 6 * 5 * 3 * 4, 4 * 3 * 4 + 3, 2 * 3 * 7 * 6, true},
    {"inner_product", R"(type: "InnerProduct" inner_product_param { num_output: 7 })", 2 * 7 * 120,
     7 * 120 + 7, 2 * 7, true},
    // A stride larger than the kernel leaves rows out; in row-major order columns share pieces of
    // memory.
    {"strided_convolution",
     R"(type: "Convolution" convolution_param { num_output: 3 kernel_size: 1 stride: 2 })",
     2 * 3 * 3 * 3 * 4, 3 * 4 + 3, 2 * 3 * 3 * 3, true, 2 * 4 * 3 * 5},
    {"overlapping_convolution",
     R"(type: "Convolution" convolution_param { num_output: 3 kernel_size: 3 stride: 2 })",
     2 * 3 * 2 * 2 * 4 * 9, 3 * 4 * 9 + 3, 2 * 3 * 2 * 2, true},
    {"strided_average",
     R"(type: "Pooling" pooling_param { pool: AVE kernel_size: 1 stride: 3 round_mode: FLOOR })", 0,
     0, 2 * 4 * 2 * 2, false, 2 * 4 * 2 * 5},
    {"power", R"(type: "Power" power_param { scale: 2 })", 0, 0, 2 * 120, false},
};

class WorkTest : public testing::TestWithParam<WorkCase> {};

TEST_P(WorkTest, CountsOperationsAndBytes) {
  const WorkCase& c = GetParam();
  NetParameter net;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(cat(R"(force_backward: true
             layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 4 dim: 6 dim: 5 } } }
             layer { name: "it" bottom: "x" top: "y" )",
                                                                c.layer, "}"),
                                                            &net));
  Context context(Device::cpu);
  NetOptions options;
  options.format = false;  // no Reorder takes a part
  options.seed_outputs = true;
  Net n(context, net, options);
  Work forward, backward;
  n.set_observer([&](const Net::StepInfo& step, bool begin) {
    if (begin || step.node->message.name() != "it") return;
    (step.backward ? backward : forward) =
        step.backward ? backward_work(*step.node) : forward_work(*step.node);
  });
  n.forward(0);
  n.backward();
  const int64_t x = 2 * 120, y = c.outputs, w = c.weights, read = c.read;
  const bool weights = w > 0;
  EXPECT_EQ(forward.operations, 2 * c.multiply_adds);
  EXPECT_EQ(forward.bytes, 4.0 * static_cast<double>(read + w + y));
  EXPECT_EQ(backward.operations, 2 * c.multiply_adds * (1 + weights));
  // Both gradients of blobs, the parameters and theirs, and x if it is read again.
  EXPECT_EQ(backward.bytes, 4.0 * static_cast<double>(x + y + 2 * w + (c.keeps_bottom ? read : 0)));
}

INSTANTIATE_TEST_SUITE_P(Layers, WorkTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// One tensor of each size, so that sums tell which of them were counted.
struct NormCase {
  const char* name;
  bool statistics, affine;  // sums of x come in; scale and shift go out instead of y
  bool reads_x, writes_y;
};
class WorkOfEdges : public testing::TestWithParam<NormCase> {};

TEST_P(WorkOfEdges, CountsOnlyWhatIsTouched) {
  const NormCase& c = GetParam();
  Context context(Device::cpu);
  LayerParameter message;
  message.set_name("bn");
  message.set_type("BatchNorm+ReLU");
  const std::unique_ptr<Layer> layer = make_layer(message, true);
  const Shape shape{8, 4, 6, 5}, channels{4}, pairs{2, 4};
  layer->setup(context, {shape});
  Preparation preparation;
  preparation.bottoms = preparation.tops = {shape};
  Forward f;
  f.bottom = {Tensor(context, shape)};
  f.bottom_edges.resize(1);
  for (const ParameterSpec& spec : layer->parameters())
    f.parameters.emplace_back(context, spec.shape);
  f.saved = {Tensor(context, channels), Tensor(context, channels)};
  f.top = {c.affine ? Tensor() : Tensor(context, shape)};
  if (c.statistics) f.bottom_edges[0].statistics = Tensor(context, pairs);
  if (c.affine) f.top_edge.affine = Tensor(context, pairs, DType::f16);
  const double small = 4 * (4 + 4 + 1 + 2 * 4) + c.statistics * 4 * 8 + c.affine * 2 * 8;
  const double blob = 4 * 8 * 120;
  EXPECT_EQ(forward_work(*layer, preparation, f).bytes, small + blob * (c.reads_x + c.writes_y));
}

INSTANTIATE_TEST_SUITE_P(Edges, WorkOfEdges,
                         testing::Values(NormCase{"alone", false, false, true, true},
                                         NormCase{"given_sums", true, false, true, true},
                                         NormCase{"passes_on_scale", false, true, true, false},
                                         NormCase{"both", true, true, false, false}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Work, OfATensorThatIsReadTwiceCountsOnce) {
  Context context(Device::cpu);
  LayerParameter message;
  message.set_name("sum");
  message.set_type("Eltwise");
  const std::unique_ptr<Layer> layer = make_layer(message, true);
  const Shape shape{2, 3};
  layer->setup(context, {shape, shape});
  Preparation preparation;
  preparation.bottoms = {shape, shape};
  preparation.tops = {shape};
  Forward f;
  const Tensor x(context, shape);
  f.bottom = {x, x};
  f.top = {Tensor(context, shape)};
  EXPECT_EQ(forward_work(*layer, preparation, f).bytes, 4.0 * (6 + 6));
  f.top = {x};  // in place: read and written
  EXPECT_EQ(forward_work(*layer, preparation, f).bytes, 4.0 * (6 + 6));
}

TEST(Work, WithoutGradientsOfWeightsTheInputIsNotRead) {
  Context context(Device::cpu);
  LayerParameter message;
  message.set_name("ip");
  message.set_type("InnerProduct");
  message.mutable_inner_product_param()->set_num_output(5);
  message.mutable_inner_product_param()->set_bias_term(false);
  const std::unique_ptr<Layer> layer = make_layer(message, true);
  const Shape x{2, 3}, y{2, 5};
  layer->setup(context, {x});
  Preparation preparation;
  preparation.bottoms = {x};
  preparation.tops = {y};
  Backward b;
  b.bottom = {Tensor(context, x)};
  b.top_diff = {Tensor(context, y)};
  b.bottom_diff = {Tensor(context, x)};
  b.parameters = {Tensor(context, {5, 3})};
  b.parameter_diff = {Tensor()};
  EXPECT_EQ(backward_work(*layer, preparation, b).bytes, 4.0 * (10 + 15 + 6));
  b.parameter_diff = {Tensor(context, {5, 3})};
  EXPECT_EQ(backward_work(*layer, preparation, b).bytes, 4.0 * (6 + 10 + 15 + 6 + 15));
  b.accumulate = {1};
  EXPECT_EQ(backward_work(*layer, preparation, b).bytes, 4.0 * (6 + 10 + 15 + 6 + 15 + 15));
}

// A residual block whose blobs the plan folds, recomputes and shares memory of, as far as the
// device can.
const char* const kBlock = R"(
  layer { name: "in" type: "DummyData" top: "x" top: "label"
          dummy_data_param { shape { dim: 4 dim: 16 dim: 12 dim: 12 } shape { dim: 4 } } }
  layer { name: "a" type: "Convolution" bottom: "x" top: "a"
          convolution_param { num_output: 64 kernel_size: 1 weight_filler { type: "xavier" } bias_term: false } }
  layer { name: "bn_a" type: "BatchNorm" bottom: "a" top: "a" }
  layer { name: "scale_a" type: "Scale" bottom: "a" top: "a" scale_param { bias_term: true } }
  layer { name: "relu_a" type: "ReLU" bottom: "a" top: "a" }
  layer { name: "b" type: "Convolution" bottom: "a" top: "b"
          convolution_param { num_output: 64 kernel_size: 1 weight_filler { type: "xavier" } bias_term: false } }
  layer { name: "bn_b" type: "BatchNorm" bottom: "b" top: "b" }
  layer { name: "scale_b" type: "Scale" bottom: "b" top: "b" scale_param { bias_term: true } }
  layer { name: "relu_b" type: "ReLU" bottom: "b" top: "b" }
  layer { name: "c" type: "Convolution" bottom: "b" top: "c"
          convolution_param { num_output: 64 kernel_size: 1 weight_filler { type: "xavier" } bias_term: false } }
  layer { name: "bn_c" type: "BatchNorm" bottom: "c" top: "c" }
  layer { name: "scale_c" type: "Scale" bottom: "c" top: "c" scale_param { bias_term: true } }
  layer { name: "sum" type: "Eltwise" bottom: "a" bottom: "c" top: "sum" }
  layer { name: "relu" type: "ReLU" bottom: "sum" top: "sum" }
  layer { name: "pool" type: "Pooling" bottom: "sum" top: "pool"
          pooling_param { pool: AVE global_pooling: true } }
  layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
          inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";

// No step moves more than twice what lives while it runs (reading and writing), and parameters
// with their gradients. A step that passes on scale and shift moves less than its input.
void expect_possible(Device device, Precision precision, Recompute recompute) {
  SCOPED_TRACE(cat(name_of(precision), " ", static_cast<int>(recompute)));
  NetParameter message;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kBlock, &message));
  Context context(device);
  NetOptions options;
  options.state.set_phase(TRAIN);
  options.precision = precision;
  options.recompute = recompute;
  Net net(context, message, options);
  int steps = 0;
  net.set_observer([&](const Net::StepInfo& info, bool begin) {
    if (begin) return;
    ++steps;
    const PlanNode& node = *info.node;
    const Plan& plan = net.plan();
    const auto index = static_cast<int>(&node - plan.nodes.data());
    const int step = info.backward ? plan.backward_step(index) : plan.forward_step(index);
    double most = 0;
    for (const Storage& storage : plan.storages) {
      const bool lives = storage.persistent || (storage.first <= step && step <= storage.last);
      if (lives) most += 2 * static_cast<double>(storage.bytes);
    }
    for (const Tensor& parameter : node.arguments.forward.parameters)
      most += 4 * static_cast<double>(parameter.count()) * 4;
    const Work work = info.backward ? backward_work(node) : forward_work(node);
    EXPECT_LE(work.bytes, most) << node.message.name() << " " << info.backward;
    if (!info.backward && node.storages.affine >= 0) {
      EXPECT_LT(work.bytes, static_cast<double>(node.arguments.forward.bottom[0].bytes()));
    }
  });
  net.forward(0);
  net.backward();
  EXPECT_GT(steps, 10);
}

TEST(Work, OfAStepIsNoMoreThanItsMemory) {
  for (const Recompute recompute : {Recompute::off, Recompute::all})
    expect_possible(Device::cpu, Precision::fp32, recompute);
  if (gpu_count() == 0) return;
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16}) {
    for (const Recompute recompute : {Recompute::off, Recompute::all})
      expect_possible(Device::gpu, precision, recompute);
  }
}

// Winograd's algorithm, where the plan chooses it, executes a quarter of the operations.
TEST(Work, OfWinogradsAlgorithm) {
  NetParameter net;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 64 dim: 32 dim: 32 } } }
         layer { name: "it" type: "Convolution" bottom: "x" top: "y"
                 convolution_param { num_output: 64 kernel_size: 3 pad: 1 } })",
      &net));
  for (const bool pack : {false, true}) {
    Context context(Device::cpu);
    NetOptions options;
    options.state.set_phase(TEST);
    options.forward_only = true;
    options.pack = pack;
    Net n(context, net, options);
    bool found = false;
    n.set_observer([&](const Net::StepInfo& step, bool begin) {
      if (begin || step.node->message.name() != "it") return;
      const auto& chosen = step.node->chosen;
      const bool winograd = std::count(chosen.begin(), chosen.end(), "winograd") > 0;
      EXPECT_TRUE(!winograd || pack);
      const Work work = forward_work(*step.node);
      EXPECT_EQ(work.operations, 2.0 * 64 * 64 * 9 * 32 * 32);
      EXPECT_EQ(work.executed, work.operations / (winograd ? 4 : 1));
      found = true;
    });
    n.forward(0);
    EXPECT_TRUE(found);
  }
}

}  // namespace work_test
}  // namespace crema::tests
