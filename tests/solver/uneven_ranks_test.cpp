// Batches of 5 samples that 3 ranks divide into 2, 2 and 1: their results and output match one
// rank.
#include <gtest/gtest.h>

#include <filesystem>

#include "solver/rank_fixture.h"

namespace crema::tests {
namespace uneven_ranks_test {

constexpr int kSamples = 5, kRanks = 3;

class UnevenRanks : public RankTraining {
 protected:
  // The fixture's net with that batch.
  SolverFile uneven(const std::string& solver, const std::string& more = "") const {
    SolverFile file = this->file(solver, more);
    file.solver.mutable_net_param()->mutable_layer(0)->mutable_data_param()->set_batch_size(
        kSamples);
    return file;
  }
  // Of layers alone.
  static SolverFile around(const std::string& layers) {
    return parse_solver_text(cat("net_param {", layers,
                                 "}\nrandom_seed: 3 base_lr: 0.05 lr_policy: \"fixed\" display: 1 "
                                 "max_iter: 4 snapshot_after_train: false"),
                             "solver.prototxt");
  }
  static SolverFile lenet(const Folder& folder);
  void expect_as_one(const SolverFile& file) {
    const Seen one = train(file, 1);
    expect_near(train(file, kRanks), one);
  }
};

// A metric that leaves labels out is a mean over the labels that count.
constexpr const char* kIgnoring = R"(
    layer { name: "g" type: "InnerProduct" bottom: "h" top: "g"
      inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
    layer { name: "some" type: "Accuracy" bottom: "g" bottom: "y" top: "some"
      accuracy_param { ignore_label: 1 } }
    layer { name: "of_some" type: "SoftmaxWithLoss" bottom: "g" bottom: "y" top: "of_some"
      loss_param { ignore_label: 1 } }
    layer { name: "sum" type: "SoftmaxWithLoss" bottom: "g" bottom: "y" top: "sum"
      loss_weight: 0.1 loss_param { normalization: NONE } }
    layer { name: "shown" type: "SoftmaxWithLoss" bottom: "g" bottom: "y" top: "shown"
      loss_weight: 0 loss_param { ignore_label: 2 } }
    layer { name: "sum_shown" type: "SoftmaxWithLoss" bottom: "g" bottom: "y" top: "sum_shown"
      loss_weight: 0 loss_param { normalization: NONE } })";

class UnevenRules : public UnevenRanks, public testing::WithParamInterface<const char*> {};

TEST_P(UnevenRules, GoTheWayOfOneRank) { expect_as_one(uneven(GetParam(), kIgnoring)); }

INSTANTIATE_TEST_SUITE_P(
    All, UnevenRules,
    testing::Values("momentum: 0.9 epoch_log: true",
                    "momentum: 0.9 iter_size: 2 clip_gradients: 0.4 epoch_log: true",
                    "type: \"AdamW\" base_lr: 0.005 ema_decay: 0.8 test_ema: true",
                    "lr_policy: \"plateau\" gamma: 0.5 plateau_winsize: 1 plateau_winsize: 2"));

// Running means are those of all samples, and ranks with more of them count more.
TEST_F(UnevenRanks, RunningMeansOfBatchNorm) {
  const SolverFile file = uneven("momentum: 0.9", R"(
      layer { name: "bn" type: "BatchNorm" bottom: "x" top: "n"
        batch_norm_param { moving_average_fraction: 0.9 } }
      layer { name: "unread" type: "Silence" bottom: "n" })");
  const Seen one = train(file, 1), several = train(file, kRanks);
  // Behind the convolution's 4 * 2 * 9 weights and 4 biases: 2 means, 2 variances, the factor.
  ASSERT_GT(one.weights.size(), 81u);
  for (const size_t i : {76, 77, 80}) {
    EXPECT_GT(std::abs(one.weights[i]), 1e-3) << i;
    EXPECT_NEAR(several.weights[i], one.weights[i], 1e-5 * (1 + std::abs(one.weights[i]))) << i;
  }
}

TEST_F(UnevenRanks, SynchronizedBatchNorm) {
  expect_as_one(uneven("momentum: 0.9", R"(layer { name: "bn" type: "BatchNorm" bottom: "h" top: "h"
      batch_norm_param { sync_bn: true moving_average_fraction: 0.9 } })"));
}

// LeNet on a small database, with a label that loss and accuracy leave out.
SolverFile UnevenRanks::lenet(const Folder& folder) {
  const std::string top = std::filesystem::path(CREMA_TEST_DATA).parent_path();
  const std::string digits = image_database(folder, 13, {1, 28, 28},
                                            [](int64_t i) { return static_cast<int>(i * i % 4); });
  NetParameter net = read_net_file(top + "/models/lenet/digits_train_val.prototxt").net;
  for (LayerParameter& layer : *net.mutable_layer()) {
    if (layer.type() == "Data") {
      layer.mutable_data_param()->set_source(digits);
      layer.mutable_data_param()->set_batch_size(kSamples);
    }
    if (layer.type() == "Accuracy") {
      layer.clear_include();
      layer.mutable_accuracy_param()->set_ignore_label(1);
    }
    if (layer.type() == "SoftmaxWithLoss") layer.mutable_loss_param()->set_ignore_label(1);
  }
  SolverFile file = around("");
  *file.solver.mutable_net_param() = net;
  file.solver.set_base_lr(0.01f);
  return file;
}

TEST_F(UnevenRanks, LeNetWithAnIgnoredLabel) {
  const Folder folder;
  expect_as_one(lenet(folder));
}

// The format of weights depends on the kernel, and that on a rank's part of the batch, its threads and
// its processor; gradients are summed as they are in memory.
TEST_F(UnevenRanks, KernelsThatWantOtherFormatsOfWeights) {
  const Folder folder;
  odd_implementation_ = "plain";
  expect_as_one(lenet(folder));
}

TEST_F(UnevenRanks, ParametersOfTheSizeOfTheBatch) {
  const SolverFile file = around(R"(
      layer { name: "data" type: "DummyData" top: "x" top: "y" dummy_data_param {
        shape { dim: 5 dim: 4 } shape { dim: 5 dim: 2 } data_filler { type: "gaussian" std: 1 } } }
      layer { name: "row" type: "Reshape" bottom: "x" top: "r" reshape_param { shape { dim: 1 dim: -1 } } }
      layer { name: "prelu" type: "PReLU" bottom: "r" top: "p" }
      layer { name: "unread" type: "Silence" bottom: "p" }
      layer { name: "ip" type: "InnerProduct" bottom: "x" top: "z"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "EuclideanLoss" bottom: "z" bottom: "y" top: "l" })");
  train(file, 1);
  const std::string message = error_of([&] { train(file, kRanks); });
  expect_part(message, "shape of parameter 0 of layer \"prelu\"");
  expect_part(message, "train with -batch_mode per_gpu");
}

// Tops of DummyData are divided where their first axis is the batch.
TEST_F(UnevenRanks, TopsOfDummyDataWithoutSamples) {
  const std::string scores = R"(
      layer { name: "g" type: "InnerProduct" bottom: "h" top: "g"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } })",
                    matrix = R"(layer { name: "matrix" type: "DummyData" top: "matrix"
        dummy_data_param { shape { dim: 3 dim: 3 } data_filler { type: "uniform" min: 0.5 max: 1 } } })",
                    loss = R"(layer { name: "gain" type: "InfogainLoss" bottom: "g" bottom: "y"
        bottom: "matrix" top: "gain" })";
  expect_as_one(uneven("momentum: 0.9", matrix + scores + loss));
  expect_as_one(around(cat(R"(layer { name: "data" type: "DummyData" top: "h" top: "y" top: "matrix"
      dummy_data_param { shape { dim: 5 dim: 4 } shape { dim: 5 } shape { dim: 3 dim: 3 }
        data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 1 }
        data_filler { type: "uniform" min: 0.5 max: 1 } } })",
                           scores, loss)));
}

constexpr const char* kRecurrent = R"(
    layer { name: "cont" type: "ContinuationIndicator" top: "cont"
      continuation_indicator_param { time_step: 2 batch_size: 5 } }
    layer { name: "lstm" type: "LSTM" bottom: "s" bottom: "cont" top: "h" recurrent_param {
      num_output: 4 weight_filler { type: "gaussian" std: 0.5 } } }
    layer { name: "last" type: "Reduction" bottom: "h" top: "l" loss_weight: 1
      reduction_param { operation: SUMSQ } })";

TEST_F(UnevenRanks, SequencesButNotTheirSteps) {
  expect_as_one(around(cat(R"(layer { name: "data" type: "DummyData" top: "x" dummy_data_param {
      shape { dim: 5 dim: 2 dim: 3 } data_filler { type: "gaussian" std: 1 } } }
      layer { name: "steps" type: "Permute" bottom: "x" top: "s"
        permute_param { order: 1 order: 0 order: 2 } })",
                           kRecurrent)));
  const SolverFile by_steps = around(R"(
      layer { name: "data" type: "DummyData" top: "x" top: "cont" dummy_data_param {
        shape { dim: 6 dim: 2 dim: 3 } shape { dim: 6 dim: 2 } } }
      layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "h" recurrent_param {
        num_output: 4 weight_filler { type: "gaussian" std: 0.5 } } }
      layer { name: "last" type: "Reduction" bottom: "h" top: "l" loss_weight: 1 })");
  train(by_steps, 1);
  train(by_steps, 2, {}, false);
  const std::string message = error_of([&] { train(by_steps, 2); });
  expect_part(message,
              "its bottom \"h\" is computed from several samples of the batch (in layer \"lstm\")");
  expect_part(message, "-batch_mode per_gpu");
}

}  // namespace uneven_ranks_test
}  // namespace crema::tests
