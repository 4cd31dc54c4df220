// Model::shared(): several threads, each with its own Model, compute on the same weights.
#include <atomic>
#include <thread>

#include "crema.h"
#include "crema/dropout_net.h"
#include "device/device.h"
#include "support.h"

namespace crema::tests {
namespace shared_model_test {

using Dims = std::vector<int64_t>;
using Values = std::vector<float>;

const char* const kResidual = R"(
  name: "residual"
  layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 9 dim: 9 } } }
  layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
    convolution_param { num_output: 16 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "xavier" } } }
  layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1" }
  layer { name: "scale1" type: "Scale" bottom: "conv1" top: "conv1" scale_param { bias_term: true } }
  layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
  layer { name: "conv2" type: "Convolution" bottom: "conv1" top: "conv2"
    convolution_param { num_output: 16 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "xavier" } } }
  layer { name: "bn2" type: "BatchNorm" bottom: "conv2" top: "conv2" }
  layer { name: "scale2" type: "Scale" bottom: "conv2" top: "conv2" scale_param { bias_term: true } }
  layer { name: "sum" type: "Eltwise" bottom: "conv1" bottom: "conv2" top: "sum" }
  layer { name: "relu2" type: "ReLU" bottom: "sum" top: "sum" }
  layer { name: "pool" type: "Pooling" bottom: "sum" top: "pool" pooling_param { pool: AVE global_pooling: true } }
  layer { name: "fc" type: "InnerProduct" bottom: "pool" top: "fc"
    inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
)";

// The LSTM's state passes from one forward() to the next.
const char* const kLstm = R"(
  layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 2 dim: 5 } } }
  layer { name: "cont" type: "DummyData" top: "cont"
    dummy_data_param { shape { dim: 2 dim: 2 } data_filler { type: "constant" value: 1 } } }
  layer { name: "lstm" type: "LSTM" bottom: "data" bottom: "cont" top: "lstm"
    recurrent_param { num_output: 6 weight_filler { type: "gaussian" std: 0.5 } } }
)";

int64_t count_of(const Dims& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

Values numbers(int64_t count, int64_t from = 0) {
  Values values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(((i + from) * 7919) % 101) / 101;
  return values;
}

// Weights that depend on `variant`, and statistics that are not those of a new BatchNorm.
void set_weights(Model& model, int64_t variant) {
  for (const ParameterInfo& p : model.parameters()) {
    Values values = numbers(count_of(p.shape), variant);
    const bool weights = p.shape.size() > 1;
    for (float& value : values) value = weights ? (value - 0.5f) / 4 : value + 0.5f;
    model.set_parameter(p.layer, p.index, values);
  }
}

Values forward(Model& model, int64_t from) {
  for (const BlobInfo& input : model.inputs())
    model.set_input(input.name, numbers(count_of(input.shape), from));
  model.forward();
  return model.values(model.outputs()[0].name);
}

struct NetCase {
  std::string name, text, file;  // the text, or a file of models/
  bool deploy = false;
  std::string assume = {};
};

class SharedModel : public testing::Test {
 protected:
  std::string written(const std::string& text) const {
    folder_.write("net.prototxt", text);
    return folder_.file("net.prototxt");
  }
  std::string file_of(const NetCase& net) const {
    return net.file.empty() ? written(net.text) : cat(CREMA_TEST_DATA "/../models/", net.file);
  }

  // Each of four threads computes what a Model on its own computes, bit by bit.
  void expect_alike(const NetCase& net, const ModelOptions& options) const {
    constexpr int kThreads = 4, kPasses = 50;
    std::vector<std::vector<Values>> wanted(kThreads);
    const auto original = std::make_unique<Model>(file_of(net), options);
    set_weights(*original, 3);
    for (int t = 0; t < kThreads; ++t) {
      Model alone(file_of(net), options);
      set_weights(alone, 3);
      for (int pass = 0; pass < kPasses; ++pass) wanted[t].push_back(forward(alone, pass * 5 + t));
    }
    EXPECT_NE(wanted[0], wanted[1]);
    EXPECT_GT(std::set<Values>(wanted[0].begin(), wanted[0].end()).size(),
              1u);  // 16 bits are coarse
    std::vector<Model> models;
    for (int t = 0; t < kThreads; ++t) models.push_back(original->shared());
    expect_threads(models, wanted);
    // The weights stay with those that use them.
    Model last = models[2].shared();
    models.clear();
    EXPECT_EQ(forward(last, 0), wanted[0][0]);
    EXPECT_EQ(forward(*original, 0), wanted[0][0]);
  }

  static void expect_threads(std::vector<Model>& models,
                             const std::vector<std::vector<Values>>& wanted) {
    std::vector<std::vector<Values>> found(models.size());
    std::vector<std::thread> threads;
    for (size_t t = 0; t < models.size(); ++t) {
      threads.emplace_back([&, t] {
        for (size_t pass = 0; pass < wanted[t].size(); ++pass)
          found[t].push_back(forward(models[t], static_cast<int64_t>(pass * 5 + t)));
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t t = 0; t < models.size(); ++t) EXPECT_EQ(found[t], wanted[t]) << "thread " << t;
  }

  // While two threads run, a third changes all weights at once: each result is that of one of two
  // sets of weights, and at last that of the last one.
  void expect_changes_whole(const ModelOptions& options) const {
    const std::string net = written(kResidual);
    Values wanted[2];
    for (const int variant : {0, 1}) {
      Model alone(net, options);
      alone.set_parameter("fc", 0, numbers(4 * 16, variant));
      wanted[variant] = forward(alone, 1);
    }
    ASSERT_NE(wanted[0], wanted[1]);
    auto writer = std::make_unique<Model>(net, options);
    writer->set_parameter("fc", 0, numbers(4 * 16, 0));
    std::vector<Model> models;
    for (int t = 0; t < 2; ++t) models.push_back(writer->shared());
    std::atomic<bool> stop = false;
    std::atomic<int> strange = 0;
    std::vector<std::thread> threads;
    for (Model& model : models) {
      threads.emplace_back([&] {
        while (!stop) {
          const Values found = forward(model, 1);
          if (found != wanted[0] && found != wanted[1]) ++strange;
        }
      });
    }
    for (int change = 1; change < 100; ++change)
      writer->set_parameter("fc", 0, numbers(4 * 16, change % 2));
    EXPECT_EQ(writer->parameter("fc"), numbers(4 * 16, 1));
    EXPECT_EQ(forward(*writer, 1), wanted[1]);
    stop = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(strange, 0);
    writer.reset();
    for (Model& model : models) EXPECT_EQ(forward(model, 1), wanted[1]);
  }

  Folder folder_;
};

class SharedNets : public SharedModel, public testing::WithParamInterface<NetCase> {};

const NetCase kCases[] = {
    {"LeNet", "", "lenet/train_val.prototxt", true, "data=2x1x28x28"},
    {"Residual", kResidual, ""},
    {"LSTM", kLstm, ""},
    {"Dropout", kDropoutNet, "", true},
};

TEST_P(SharedNets, ComputeWhatOneComputes) {
  const NetCase& net = GetParam();
  expect_alike(net, {.deploy = net.deploy, .assume = net.assume});
}

TEST_P(SharedNets, ComputeWhatOneComputesOnAGpu) {
  if (usable_gpus() == 0) GTEST_SKIP() << gpu_problem();
  const NetCase& net = GetParam();
  for (const char* precision : {"fp32", "tf32", "bf16", "fp16"}) {
    SCOPED_TRACE(precision);
    expect_alike(net, {.device = ComputeDevice::gpu(),
                       .deploy = net.deploy,
                       .assume = net.assume,
                       .precision = precision,
                       .deterministic = true});
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, SharedNets, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST_F(SharedModel, OutlivesTheOriginal) {
  Model other = [&] {
    Model original(written(kResidual));
    set_weights(original, 5);
    forward(original, 0);
    return original.shared();
  }();
  Model alone(written(kResidual));
  set_weights(alone, 5);
  EXPECT_EQ(forward(other, 2), forward(alone, 2));
}

TEST_F(SharedModel, HasItsOwnShapes) {
  Model original(written(kResidual));
  const Values two = forward(original, 0);
  original.reshape("data", {5, 3, 7, 7});
  Model same = original.shared(), other = original.shared();
  EXPECT_EQ(same.inputs()[0].shape, Dims({5, 3, 7, 7}));
  EXPECT_EQ(same.outputs()[0].shape[0], 5);
  expect_part(error_of([&] { same.forward(); }), "no values were set for data");
  const Values five = forward(original, 0);
  std::thread running([&] {
    for (int pass = 0; pass < 50; ++pass) EXPECT_EQ(forward(same, 0), five);
  });
  for (const int64_t size : {9, 6, 11}) other.reshape("data", {2, 3, size, size});
  other.reshape("data", {2, 3, 9, 9});
  EXPECT_EQ(forward(other, 0), two);
  running.join();
  EXPECT_EQ(original.inputs()[0].shape, Dims({5, 3, 7, 7}));
  EXPECT_EQ(forward(original, 0), five);
  EXPECT_EQ(same.shared().inputs()[0].shape, Dims({5, 3, 7, 7}));
}

TEST_F(SharedModel, SeesChangedWeights) { expect_changes_whole({}); }

TEST_F(SharedModel, SeesChangedWeightsOnAGpu) {
  if (usable_gpus() == 0) GTEST_SKIP() << gpu_problem();
  for (const char* precision : {"fp32", "fp16"}) {
    SCOPED_TRACE(precision);
    expect_changes_whole(
        {.device = ComputeDevice::gpu(), .precision = precision, .deterministic = true});
  }
}

TEST_F(SharedModel, SeesLoadedWeights) {
  const std::string net = written(kResidual);
  folder_.write("solver.prototxt",
                cat("train_net_param {", kResidual,
                    "layer { name: \"loss\" type: \"EuclideanLoss\" bottom: \"fc\" bottom: \"fc\" "
                    "top: \"loss\" } }\nbase_lr: 0.1 lr_policy: \"fixed\" random_seed: 7 "
                    "snapshot_prefix: \"",
                    folder_.file("trained"), "\""));
  Trainer trainer(folder_.file("solver.prototxt"));
  trainer.set_input("data", numbers(2 * 3 * 81));
  trainer.step(1);
  const std::string weights = trainer.snapshot().weights;
  Model trained(net, {.weights = {weights}}), original(net);
  Model first = original.shared(), second = first.shared();
  EXPECT_NE(forward(first, 0), forward(trained, 0));
  first.load_weights(weights);
  EXPECT_EQ(forward(second, 0), forward(trained, 0));
  EXPECT_EQ(forward(original, 0), forward(trained, 0));
  EXPECT_EQ(second.parameter("conv1"), trained.parameter("conv1"));
  // What cannot be loaded leaves them usable.
  EXPECT_NE(error_of([&] { second.load_weights("missing.caffemodel"); }), "");
  EXPECT_EQ(forward(first, 0), forward(trained, 0));
}

TEST_F(SharedModel, KeepsBlobsAndItsLog) {
  std::vector<std::string> lines;
  Model original(written(kResidual),
                 {.keep_blobs = true,
                  .log = [&](LogLevel, std::string_view line) { lines.emplace_back(line); }});
  forward(original, 0);
  lines.clear();
  Model other = original.shared();
  EXPECT_FALSE(lines.empty());
  forward(other, 0);
  EXPECT_EQ(other.values("conv2"), original.values("conv2"));
  EXPECT_NE(other.values("conv2"), Values(2 * 16 * 81));
}

TEST_F(SharedModel, StartsItsOwnDataAtTheBeginning) {
  Model original(written(R"(
    layer { name: "x" type: "DummyData" top: "x"
      dummy_data_param { shape { dim: 2 dim: 3 } data_filler { type: "gaussian" } } }
    layer { name: "y" type: "InnerProduct" bottom: "x" top: "y"
      inner_product_param { num_output: 4 weight_filler { type: "xavier" } } })"));
  const Values first = forward(original, 0), second = forward(original, 0);
  EXPECT_NE(first, second);
  Model other = original.shared();
  EXPECT_EQ(forward(other, 0), first);
  EXPECT_EQ(forward(other, 0), second);
}

TEST_F(SharedModel, RefusesNetsWhosePassesChangeWeights) {
  const std::string refusal = "several threads cannot share the weights of this net";
  Model training(written(kResidual), {.phase = "TRAIN"});
  expect_part(error_of([&] { training.shared(); }), refusal + ": its passes are for training");
  const std::string input =
      "layer { name: \"x\" type: \"Input\" top: \"x\" input_param { shape { dim: 2 dim: 3 } } }\n";
  for (const char* layer : {
           "type: \"Scale\" scale_param { min_value: 0 }",
           "type: \"BatchNorm\" batch_norm_param { use_global_stats: false }",
           "type: \"InnerProduct\" inner_product_param { num_output: 2 normalize: true }",
       }) {
    Model model(
        written(cat(input, "layer { name: \"changes\" bottom: \"x\" top: \"y\" ", layer, " }")));
    const std::string error = error_of([&] { model.shared(); });
    expect_part(error, "net.prototxt:2:1: layer \"changes\": ");
    expect_part(error, refusal + ": this layer changes its own in each pass");
    forward(model, 0);
  }
}

}  // namespace shared_model_test
}  // namespace crema::tests
