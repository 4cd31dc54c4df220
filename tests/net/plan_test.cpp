// The passes must not change results: every net here runs as the plain plan (each blob kept,
// nothing fused) and as the planner would run it, with each pass switched off in turn.
#include "net/plan/plan.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "data/databases/database_writer.h"
#include "net/net.h"
#include "net/plan/arena.h"
#include "support.h"

namespace crema::tests {
namespace plan_test {

struct NetCase {
  const char* name;
  const char* text;
};

const char* kInput =
    R"(layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 3 dim: 4 dim: 9 dim: 8 } } }
  layer { name: "labels" type: "Input" top: "label" input_param { shape { dim: 3 } } })";

const char* kEnd = R"(
  layer { name: "ip" type: "InnerProduct" bottom: "y" top: "ip"
          inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";

const NetCase kCases[] = {
    {"chain", R"(
      layer { name: "c1" type: "Convolution" bottom: "x" top: "c1" convolution_param { num_output: 6 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
      layer { name: "r1" type: "ReLU" bottom: "c1" top: "c1" }
      layer { name: "p1" type: "Pooling" bottom: "c1" top: "p1" pooling_param { kernel_size: 2 stride: 2 } }
      layer { name: "n1" type: "LRN" bottom: "p1" top: "n1" lrn_param { local_size: 3 alpha: 0.1 } }
      layer { name: "c2" type: "Convolution" bottom: "n1" top: "y" convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } })"},
    {"residual", R"(
      layer { name: "c0" type: "Convolution" bottom: "x" top: "c0" convolution_param { num_output: 8 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "c1" type: "Convolution" bottom: "c0" top: "c1" convolution_param { num_output: 8 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "xavier" } } }
      layer { name: "b1" type: "BatchNorm" bottom: "c1" top: "c1" }
      layer { name: "s1" type: "Scale" bottom: "c1" top: "c1" scale_param { bias_term: true } }
      layer { name: "r1" type: "ReLU" bottom: "c1" top: "c1" }
      layer { name: "c2" type: "Convolution" bottom: "c1" top: "c2" convolution_param { num_output: 8 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "xavier" } } }
      layer { name: "b2" type: "BatchNorm" bottom: "c2" top: "c2" }
      layer { name: "s2" type: "Scale" bottom: "c2" top: "c2" scale_param { bias_term: true } }
      layer { name: "sum" type: "Eltwise" bottom: "c0" bottom: "c2" top: "sum" }
      layer { name: "r2" type: "ReLU" bottom: "sum" top: "sum" }
      layer { name: "pool" type: "Pooling" bottom: "sum" top: "y" pooling_param { pool: AVE global_pooling: true } })"},
    {"projection", R"(
      layer { name: "c0" type: "Convolution" bottom: "x" top: "c0" convolution_param { num_output: 16 kernel_size: 1 bias_term: false weight_filler { type: "xavier" } } } layer { name: "b0" type: "BatchNorm" bottom: "c0" top: "c0" } layer { name: "s0" type: "Scale" bottom: "c0" top: "c0" scale_param { bias_term: true } }
      layer { name: "c1" type: "Convolution" bottom: "x" top: "c1" convolution_param { num_output: 16 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "xavier" } } }
      layer { name: "b1" type: "BatchNorm" bottom: "c1" top: "c1" } layer { name: "s1" type: "Scale" bottom: "c1" top: "c1" scale_param { bias_term: true } }
      layer { name: "sum" type: "Eltwise" bottom: "c0" bottom: "c1" top: "y" } layer { name: "r" type: "ReLU" bottom: "y" top: "y" })"},
    {"inception", R"(
      layer { name: "a" type: "Convolution" bottom: "x" top: "a" convolution_param { num_output: 3 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "ra" type: "ReLU" bottom: "a" top: "a" }
      layer { name: "b" type: "Convolution" bottom: "x" top: "b" convolution_param { num_output: 5 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
      layer { name: "rb" type: "ReLU" bottom: "b" top: "b" relu_param { negative_slope: 0.1 } }
      layer { name: "p" type: "Pooling" bottom: "x" top: "p" pooling_param { kernel_size: 3 stride: 1 pad: 1 } }
      layer { name: "cat" type: "Concat" bottom: "a" bottom: "b" bottom: "p" top: "cat" }
      layer { name: "drop" type: "Dropout" bottom: "cat" top: "cat" }
      layer { name: "flat" type: "Flatten" bottom: "cat" top: "y" })"},
    {"in_place_chain", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "y" convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
      layer { name: "s" type: "Scale" bottom: "y" top: "y" scale_param { filler { value: 1.5 } } }
      layer { name: "t" type: "TanH" bottom: "y" top: "y" }
      layer { name: "pr" type: "PReLU" bottom: "y" top: "y" }
      layer { name: "bi" type: "Bias" bottom: "y" top: "y" })"},
    {"several_readers", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
      layer { name: "s1" type: "Sigmoid" bottom: "c" top: "s1" }
      layer { name: "s2" type: "TanH" bottom: "c" top: "s2" }
      layer { name: "s3" type: "ReLU" bottom: "c" top: "s3" }
      layer { name: "e" type: "Eltwise" bottom: "s1" bottom: "s2" bottom: "s3" top: "e" eltwise_param { operation: SUM coeff: 1 coeff: -0.5 coeff: 2 } }
      layer { name: "sl" type: "Slice" bottom: "e" top: "u" top: "v" slice_param { axis: 1 } }
      layer { name: "m" type: "Eltwise" bottom: "u" bottom: "v" top: "y" eltwise_param { operation: PROD } })"},
    {"loss_with_reader", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "y" convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
      layer { name: "t" type: "TanH" bottom: "y" top: "t" loss_weight: 0.3 }
      layer { name: "d" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "d" loss_weight: 0.5 }
      layer { name: "p" type: "Power" bottom: "d" top: "p" power_param { power: 2 } loss_weight: 0.1 })"},
    {"in_place_after_split", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
      layer { name: "s" type: "Scale" bottom: "c" top: "c" scale_param { filler { value: 1.5 } } }
      layer { name: "f" type: "Flatten" bottom: "c" top: "f" }
      layer { name: "p" type: "Pooling" bottom: "c" top: "p" pooling_param { kernel_size: 2 stride: 1 } }
      layer { name: "t" type: "Sigmoid" bottom: "c" top: "c" }
      layer { name: "e" type: "Eltwise" bottom: "c" bottom: "c" top: "e" eltwise_param { coeff: 1 coeff: -3 } }
      layer { name: "g" type: "Flatten" bottom: "e" top: "g" }
      layer { name: "h" type: "Flatten" bottom: "p" top: "h" }
      layer { name: "y" type: "Concat" bottom: "f" bottom: "g" bottom: "h" top: "y" })"},
    {"pooled_relus", R"(
      layer { name: "a" type: "Convolution" bottom: "x" top: "a" convolution_param { num_output: 6 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
      layer { name: "ra" type: "ReLU" bottom: "a" top: "a" }
      layer { name: "b" type: "Convolution" bottom: "x" top: "b" convolution_param { num_output: 2 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "rb" type: "ReLU" bottom: "b" top: "b" }
      layer { name: "cat" type: "Concat" bottom: "a" bottom: "b" top: "cat" }
      layer { name: "p" type: "Pooling" bottom: "cat" top: "p" pooling_param { kernel_size: 3 stride: 2 pad: 1 } }
      layer { name: "pb" type: "Pooling" bottom: "b" top: "pb" pooling_param { kernel_size: 3 stride: 1 pad: 1 } }
      layer { name: "s" type: "Scale" bottom: "p" top: "s" }
      layer { name: "rs" type: "ReLU" bottom: "s" top: "s" }
      layer { name: "ps" type: "Pooling" bottom: "s" top: "ps" pooling_param { kernel_size: 2 stride: 1 } }
      layer { name: "c" type: "Convolution" bottom: "pb" top: "c" convolution_param { num_output: 8 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "rc" type: "ReLU" bottom: "c" top: "c" }
      layer { name: "pc" type: "Pooling" bottom: "c" top: "pc" pooling_param { kernel_size: 2 stride: 1 } }
      layer { name: "ac" type: "Pooling" bottom: "c" top: "ac" pooling_param { pool: AVE kernel_size: 2 stride: 1 } }
      layer { name: "f" type: "Flatten" bottom: "ps" top: "f" }
      layer { name: "g" type: "Flatten" bottom: "pc" top: "g" }
      layer { name: "h" type: "Flatten" bottom: "ac" top: "h" }
      layer { name: "y" type: "Concat" bottom: "f" bottom: "g" bottom: "h" top: "y" })"},
    {"joined_with_readers", R"(
      layer { name: "c0" type: "Convolution" bottom: "x" top: "c0" convolution_param { num_output: 8 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "r0" type: "ReLU" bottom: "c0" top: "c0" }
      layer { name: "c1" type: "Convolution" bottom: "c0" top: "c1" convolution_param { num_output: 8 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "b1" type: "BatchNorm" bottom: "c1" top: "c1" }
      layer { name: "s1" type: "Scale" bottom: "c1" top: "c1" scale_param { bias_term: true } }
      layer { name: "s" type: "Eltwise" bottom: "c0" bottom: "c1" top: "s" }
      layer { name: "r1" type: "ReLU" bottom: "s" top: "s" }
      layer { name: "cat" type: "Concat" bottom: "s" bottom: "c0" top: "cat" }
      layer { name: "p1" type: "Power" bottom: "cat" top: "p1" power_param { power: 2 } }
      layer { name: "p2" type: "TanH" bottom: "cat" top: "p2" }
      layer { name: "y" type: "Concat" bottom: "p1" bottom: "p2" bottom: "s" top: "y" })"},
    {"forks", R"(
      layer { name: "c1" type: "ConvolutionDepthwise" bottom: "x" top: "c1" convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
      layer { name: "r1" type: "ReLU" bottom: "c1" top: "c1" }
      layer { name: "b1" type: "BN" bottom: "c1" top: "b1" bn_param { bias_filler { value: 0.1 } } }
      layer { name: "r2" type: "ReLU" bottom: "b1" top: "b1" }
      layer { name: "b2" type: "BatchNorm" bottom: "b1" top: "b2" batch_norm_param { scale_bias: true } }
      layer { name: "s" type: "Eltwise" bottom: "b2" bottom: "c1" top: "s" }
      layer { name: "r3" type: "ReLU" bottom: "s" top: "y" })"},
};

struct Result {
  double loss = 0;
  std::map<std::string, std::vector<double>> diffs;
};

Result run(const NetCase& c, DType dtype, const NetOptions& base, std::string* dump = nullptr,
           Device device = Device::cpu) {
  NetParameter net;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(cat(kInput, c.text, kEnd), &net));
  Context context(device);
  NetOptions options = base;
  options.dtype = dtype;
  options.state.set_phase(TRAIN);
  Net n(context, net, options);
  const Tensor x = n.blob("x"), label = n.blob("label");
  std::vector<double> values(x.count());
  const Random random{7, 7};
  for (size_t i = 0; i < values.size(); ++i) values[i] = random.normal(i);
  from_doubles(context, values.data(), x);
  from_doubles(context, std::vector<double>{0, 3, 4}.data(), label);
  Result result;
  // Twice: the second finds what the first left in the arena.
  for (int pass = 0; pass < 2; ++pass) {
    n.forward(0);
    result.loss = n.loss();
    n.backward();
  }
  for (const Parameter& p : n.parameters()) {
    if (p.learned) result.diffs[cat(p.layer, " ", p.index)] = to_doubles(context, p.diff);
  }
  if (dump) *dump = n.dump_plan();
  return result;
}

void expect_equal(const Result& a, const Result& b, double tolerance) {
  EXPECT_NEAR(a.loss, b.loss, tolerance * std::abs(a.loss));
  ASSERT_EQ(a.diffs.size(), b.diffs.size());
  for (const auto& [name, reference] : a.diffs) {
    double scale = 0, error = 0;
    for (size_t i = 0; i < reference.size(); ++i) {
      scale = std::max(scale, std::abs(reference[i]));
      error = std::max(error, std::abs(reference[i] - b.diffs.at(name)[i]));
    }
    EXPECT_LE(error, tolerance * scale + tolerance * 0.01) << name;
  }
}

class PlanTest : public testing::TestWithParam<NetCase> {};

TEST_P(PlanTest, PassesKeepTheResult) {
  NetOptions plain;
  plain.keep_blobs = true;
  plain.format = false;
  for (DType dtype : {DType::f64, DType::f32}) {
    const double tolerance = dtype == DType::f64 ? 1e-10 : 2e-4;
    const Result reference = run(GetParam(), dtype, plain);
    NetOptions all, no_fuse, no_format, no_reuse, recomputed;
    recomputed.recompute = Recompute::all;
    no_fuse.fuse = false;
    no_format.format = false;
    no_reuse.reuse_memory = false;
    for (const NetOptions& options : {all, no_fuse, no_format, no_reuse, recomputed}) {
      SCOPED_TRACE(cat(name_of(dtype), " fuse ", options.fuse, " format ", options.format,
                       " reuse ", options.reuse_memory));
      expect_equal(reference, run(GetParam(), dtype, options), tolerance);
    }
  }
}

TEST_P(PlanTest, ReuseSavesMemory) {
  NetParameter net;
  ASSERT_TRUE(
      google::protobuf::TextFormat::ParseFromString(cat(kInput, GetParam().text, kEnd), &net));
  Context context(Device::cpu);
  NetOptions options;
  options.state.set_phase(TRAIN);
  NetOptions keep = options;
  keep.keep_blobs = true;
  EXPECT_LT(Net(context, net, options).memory().arena(), Net(context, net, keep).memory().arena());
}

INSTANTIATE_TEST_SUITE_P(Nets, PlanTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Plan, FusesWhatItKnows) {
  std::string dump;
  run(kCases[0], DType::f32, {}, &dump);
  EXPECT_NE(dump.find("Convolution+ReLU"), std::string::npos) << dump;
  run(kCases[1], DType::f32, {}, &dump);
  EXPECT_NE(dump.find("BatchNorm+Scale+Sum+ReLU"), std::string::npos) << dump;
  run(kCases[std::size(kCases) - 1], DType::f32, {}, &dump);
  for (const char* fused : {"ConvolutionDepthwise+ReLU", "BN+ReLU", "BatchNorm+Sum+ReLU"})
    EXPECT_NE(dump.find(fused), std::string::npos) << fused << dump;
}

TEST(Plan, DumpSaysWhatEachPassDecided) {
  std::string dump;
  run(kCases[0], DType::f32, {}, &dump);
  for (const char* part :
       {"fuse on: 2 layers share a step", "format on: ", "memory on: ",
        "recompute cheap: 0 values, 0 bytes, written again in backward", "overlap off",
        "Convolution+ReLU = c1 + r1; fp32; ", "reads 0:x", "float32 channels-last, arena+",
        "steps ", "gradient arena+", "LRN = n1; fp32; own", "saves 5, kept+",
        "memory: activations ", "gradients ", "saved ", "workspace up to ", "\nparameters: "})
    expect_part(dump, part);
  NetOptions off;
  off.fuse = off.format = off.reuse_memory = false;
  run(kCases[0], DType::f32, off, &dump);
  for (const char* part :
       {"fuse off: 0 layers", "format off: 0 of ", ", 0 reorders", "memory off: "})
    expect_part(dump, part);
}

TEST(Plan, InPlaceOnOneOfSeveralReadersLeavesTheOthersAlone) {
  NetParameter net;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 } } }
    layer { name: "two" type: "Split" bottom: "x" top: "a" top: "b" }
    layer { name: "p" type: "Power" bottom: "a" top: "a" power_param { scale: 10 } }
    layer { name: "q" type: "Power" bottom: "b" top: "y" power_param { shift: 1 } })",
                                                            &net));
  Context context(Device::cpu);
  NetOptions options;
  options.state.set_phase(TEST);
  Net n(context, net, options);
  from_floats(context, std::vector<float>{1, 2}.data(), n.blob("x"));
  n.forward(0);
  EXPECT_EQ(to_floats(context, n.blob("a")), (std::vector<float>{10, 20}));
  EXPECT_EQ(to_floats(context, n.blob("y")), (std::vector<float>{2, 3}));
}

TEST(Plan, NetsShareParametersAndActivationMemory) {
  NetParameter net;
  ASSERT_TRUE(
      google::protobuf::TextFormat::ParseFromString(cat(kInput, kCases[0].text, kEnd), &net));
  Context context(Device::cpu);
  auto pool = std::make_shared<ArenaPool>();
  NetOptions train, test;
  train.state.set_phase(TRAIN);
  train.arena = pool;
  Net a(context, net, train);
  test.state.set_phase(TEST);
  test.share = &a;
  test.arena = pool;
  Net b(context, net, test);
  EXPECT_EQ(a.parameters()[0].data.raw(), b.parameters()[0].data.raw());
  EXPECT_EQ(b.memory().parameters, 0u);
  EXPECT_EQ(pool->bytes(), std::max(a.memory().arena(), b.memory().arena()));
}

TEST(Plan, ReshapingAnInputMakesTheOutputFollow) {
  NetParameter net;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
    layer { name: "c" type: "Convolution" bottom: "x" top: "y" convolution_param { num_output: 4 kernel_size: 3 } })",
                                                            &net));
  Context context(Device::cpu);
  Net n(context, net, {});
  n.forward(0);
  n.reshape("x", {5, 3, 6, 7});
  n.forward(0);
  EXPECT_EQ(n.blob("y").shape(), (Shape{5, 4, 4, 5}));
}

TEST(Plan, ImagesOfAnySizeMakeTheNetFollow) {
  const Folder folder;
  const std::string path = folder.file("db");
  const std::unique_ptr<DatabaseWriter> writer = create_database(path, DataParameter::LMDB);
  for (int i = 0; i < 3; ++i) {
    Datum datum;
    datum.set_channels(2);
    datum.set_height(4 + i);
    datum.set_width(9 - 2 * i);
    datum.set_data(std::string(2 * datum.height() * datum.width(), static_cast<char>(1 + i)));
    writer->put(std::string(1, static_cast<char>('a' + i)), datum);
  }
  writer->finish();
  NetParameter net;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    layer { name: "data" type: "Data" top: "x" top: "label"
            data_param { source: ")" + path + R"(" backend: LMDB batch_size: 1 } }
    layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 3 kernel_size: 3 } }
    layer { name: "y" type: "Pooling" bottom: "c" top: "y" pooling_param { pool: AVE global_pooling: true } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "label" top: "loss" })",
                                                            &net));
  NetOptions options;
  options.keep_blobs = true;
  Context context(Device::cpu);
  Net n(context, net, options);
  const Tensor weights = n.parameters()[0].data;
  from_doubles(context, std::vector<double>(weights.count(), 0.5).data(), weights);
  // Up, and from the largest down again; a sum of 2 * 3 * 3 equal values with the weight 0.5.
  for (uint64_t pass : {0, 1, 2, 0, 1}) {
    n.forward(pass);
    const int64_t i = static_cast<int64_t>(pass);
    EXPECT_EQ(n.blob("c").shape(), (Shape{1, 3, 2 + i, 7 - 2 * i}));
    EXPECT_EQ(to_floats(context, n.blob("y")), std::vector<float>(3, 9.f * (1 + i)));
    n.backward();
    EXPECT_EQ(n.parameters()[0].data.raw(), weights.raw());
  }
}

// In a layer's own field: a type wider than its net's counts, a narrower one does not.
const char* kPrecisions = R"(
  layer { name: "c1" type: "Convolution" bottom: "x" top: "c1" convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
  layer { name: "c2" type: "Convolution" bottom: "c1" top: "y" precision: "PRECISION" convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } })";

NetCase with_precision(std::string& text, const std::string& precision) {
  text = kPrecisions;
  text.replace(text.find("PRECISION"), 9, precision);
  return {"precision", text.c_str()};
}

TEST(Plan, ALayersPrecisionIsAtLeastItsNets) {
  std::string text, dump;
  const Result plain = run(with_precision(text, "fp32"), DType::f32, {}, &dump);
  const Result narrow = run(with_precision(text, "fp16"), DType::f32, {}, &dump);
  expect_part(dump, "Convolution = c2; fp32; ");
  EXPECT_EQ(plain.loss, narrow.loss);
  const std::string message = error_of([&] { run(with_precision(text, "fp61"), DType::f32, {}); });
  expect_part(message, "layer \"c2\": ");
  expect_part(message, "did you mean \"fp16\"?");
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  for (const Precision precision : {Precision::tf32, Precision::bf16, Precision::fp16}) {
    NetOptions options;
    options.precision = precision;
    const Result wide = run(with_precision(text, "fp32"), DType::f32, options, &dump, Device::gpu);
    expect_part(dump, cat("Convolution = c1; ", name_of(precision), "; "));
    expect_part(dump, "Convolution = c2; fp32; ");
    expect_part(dump, "InnerProduct+SoftmaxWithLoss = ip + loss; ");
    expect_equal(plain, wide, 5e-2);
  }
}

struct Mistake {
  const char* text;
  const char* message;
};

TEST(Plan, MistakesNameTheLayerAndTheWayOut) {
  const Mistake mistakes[] = {
      {R"(layer { name: "c" type: "nn.Conv2d" bottom: "x" top: "y" })",
       "did you mean \"Convolution\"?"},
      {R"(layer { name: "c" type: "Eltwise" bottom: "x" top: "y" })",
       "layer \"c\": type Eltwise takes at least 2 bottoms, but 1 is given"},
      {R"(layer { name: "c" type: "ReLU" bottom: "x" bottom: "label" top: "y" })",
       "takes 1 bottom, but 2 are given"},
      {R"(layer { name: "c" type: "ReLU" bottom: "x" top: "y" loss_weight: 1 loss_weight: 2 })",
       "loss_weight is given 2 times"},
      {R"(layer { name: "c" type: "ReLU" bottom: "x" top: "y" param { lr_mult: 1 } })",
       "param is given 1 times"},
      {R"(layer { name: "c" type: "ReLU" bottom: "x" top: "y" propagate_down: true propagate_down: false })",
       "propagate_down is given 2 times"},
  };
  Context context(Device::cpu);
  for (const Mistake& mistake : mistakes) {
    NetParameter net;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(cat(kInput, mistake.text), &net));
    SCOPED_TRACE(mistake.text);
    expect_part(error_of([&] { Net(context, net, {}); }), mistake.message);
  }
}

}  // namespace plan_test
}  // namespace crema::tests
