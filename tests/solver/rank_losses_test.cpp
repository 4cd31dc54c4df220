// Losses with several ranks: the results if ranks share a batch, and what is refused.
#include <gtest/gtest.h>

#include "layers/python_hook.h"
#include "solver/rank_fixture.h"

namespace crema::tests {
namespace rank_losses_test {

class RankLosses : public RankTraining {};

// Sums over samples are added up, means weighted: tests/layers/loss_parts_test.cpp has every loss.
TEST_F(RankLosses, LossesThatAreSums) {
  for (const auto mode : {LossParameter::NONE, LossParameter::PRE_FIXED}) {
    SCOPED_TRACE(LossParameter::NormalizationMode_Name(mode));
    SolverFile file = this->file("base_lr: 0.004 momentum: 0.9");
    LayerParameter& loss = *file.solver.mutable_net_param()->mutable_layer(7);
    ASSERT_EQ(loss.name(), "loss");
    loss.mutable_loss_param()->set_normalization(mode);
    loss.mutable_loss_param()->set_pre_fixed_normalizer(2);
    const Seen one = train(file, 1);
    expect_near(train(file, 2), one);
    expect_near(train(file, 5), one);
  }
}

// Losses that are divided by a count, of labels for example, are divided by that of all ranks. Each
// label is ignored for some ranks in some passes.
struct Counting {
  const char *solver, *layers;
};
const Counting kCounting[] = {
    {"", R"(layer { name: "valid" type: "SoftmaxWithLoss" bottom: "g" bottom: "y" top: "l"
        loss_param { ignore_label: 1 } })"},
    {"iter_size: 2 clip_gradients: 0.3",
     R"(layer { name: "valid" type: "SoftmaxWithLoss" bottom: "g" bottom: "y" top: "l"
        loss_weight: 0.5 loss_param { ignore_label: 0 } }
        layer { name: "focal" type: "FocalLoss" bottom: "g" bottom: "y" top: "f"
        loss_param { ignore_label: 1 } }
        layer { name: "norms" type: "L1Loss" bottom: "g" top: "n"
        l1_loss_param { normalize_by_num_entries: true } })"},
    {"type: \"Adam\" base_lr: 0.002 ema_decay: 0.8 test_ema: true epoch_log: true",
     R"(layer { name: "w" type: "Power" bottom: "y" top: "w" power_param { scale: 0.1 } }
        layer { name: "weighted" type: "SoftmaxWithLoss" bottom: "g" bottom: "y" bottom: "w" top: "l"
        loss_param { ignore_label: 2 } })"},
};

class CountingLosses : public RankLosses {
 protected:
  void expect_as_one(const std::vector<int>& of_ranks) {
    for (const Counting& one : kCounting) {
      SCOPED_TRACE(one.layers);
      const SolverFile file =
          this->file(one.solver, cat(R"(layer { name: "g" type: "InnerProduct" bottom: "h" top: "g"
          inner_product_param { num_output: 3 weight_filler { type: "xavier" } } })",
                                     one.layers));
      const Seen alone = train(file, 1);
      for (const int ranks : of_ranks) expect_near(train(file, ranks), alone);
    }
  }
};

TEST_F(CountingLosses, LearnAsOneRank) { expect_as_one({3, 5}); }

TEST_F(CountingLosses, LearnAsOneRankOnAGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << gpu_problem();
  device_ = Device::gpu;
  expect_as_one({2, 3});
}

TEST_F(RankLosses, ReductionsOfLosses) {
  for (const char* operation : {"SUM", "MEAN", "ASUM", "SUMSQ"}) {
    SCOPED_TRACE(operation);
    const SolverFile file =
        this->file("base_lr: 0.004",
                   cat("layer { name: \"penalty\" type: \"Reduction\" bottom: \"h\" top: \"p\" "
                       "loss_weight: 0.05 reduction_param { operation: ",
                       operation, " } }"));
    const Seen one = train(file, 1);
    expect_near(train(file, 2), one);
    expect_near(train(file, 5), one);
  }
}

// Ranks that share a batch train what one rank would, or not at all.
TEST_F(RankLosses, LossesThatHaveNoParts) {
  const std::string weights =
      "inner_product_param { num_output: 3 weight_filler { type: \"xavier\" } }";
  struct Row {
    std::string layers;
    std::vector<const char*> parts;  // of the message
  };
  const Row rows[] = {
      {R"(layer { name: "w" type: "Power" bottom: "y" top: "w" }
          layer { name: "hard" type: "SoftmaxWithLoss" bottom: "g" bottom: "y" bottom: "w" top: "l"
          softmax_param { hard_ratio: 0.5 } })",
       {"layer \"hard\"", "the loss \"l\" cannot be combined from the parts of 2 ranks",
        "hard_ratio"}},
      {R"(layer { name: "center" type: "CenterLoss" bottom: "g" bottom: "y" top: "l"
          center_loss_param { num_output: 3 } })",
       {"layer \"center\"", "a centre moves", "-batch_mode per_gpu"}},
      {R"(layer { name: "power" type: "Power" bottom: "g" top: "l" loss_weight: 0.1 })",
       {"layer \"power\"", "Reduction (reduction_param { operation: SUM })"}},
      {R"(layer { name: "plain" type: "EuclideanLoss" bottom: "g" bottom: "g" top: "e" loss_weight: 0 }
          layer { name: "square" type: "Power" bottom: "e" top: "l" power_param { power: 2 } loss_weight: 1 })",
       {"layer \"square\"", "give loss_weight to the losses that it reads"}},
      {R"(layer { name: "mean" type: "Reduction" bottom: "g" top: "m" reduction_param { operation: MEAN } }
          layer { name: "sum" type: "Reduction" bottom: "m" top: "l" loss_weight: 1 })",
       {"layer \"sum\"", "its bottom \"m\" is computed from several samples"}},
      {R"(layer { name: "over_batch" type: "Softmax" bottom: "g" top: "s" softmax_param { axis: 0 } }
          layer { name: "sum" type: "EuclideanLoss" bottom: "s" bottom: "g" top: "l" })",
       {"layer \"sum\"", "its bottom \"s\" is computed from several samples"}},
      {R"(layer { name: "turned" type: "Reverse" bottom: "g" top: "r" }
          layer { name: "sum" type: "EuclideanLoss" bottom: "r" bottom: "g" top: "l" })",
       {"layer \"sum\"", "its bottom \"r\" is computed from several samples"}},
      {R"(layer { name: "normal" type: "LayerNorm" bottom: "g" top: "n"
          layer_norm_param { axis: 0 scale_bias: false } }
          layer { name: "sum" type: "EuclideanLoss" bottom: "n" bottom: "g" top: "l" })",
       {"layer \"sum\"", "its bottom \"n\" is computed from several samples"}},
      // A mean over the batch as a factor of each sample.
      {R"(layer { name: "mean" type: "BatchReduction" bottom: "g" top: "m"
          batch_reduction_param { reduction_param { operation: MEAN axis: 0 } } }
          layer { name: "times" type: "Scale" bottom: "g" bottom: "m" top: "t" }
          layer { name: "sum" type: "EuclideanLoss" bottom: "t" bottom: "g" top: "l" })",
       {"layer \"sum\"", "its bottom \"t\" is computed from several samples"}},
      // The labels of other samples.
      {R"(layer { name: "turned" type: "Reverse" bottom: "y" top: "r" }
          layer { name: "sum" type: "SoftmaxWithLoss" bottom: "g" bottom: "r" top: "l" })",
       {"layer \"sum\"", "its bottom \"r\" is computed from several samples"}},
      // The layer treats the batch as the steps of a sequence.
      {R"(layer { name: "cont" type: "DummyData" top: "c" dummy_data_param { shape { dim: 12 dim: 4 }
          data_filler { value: 1 } } }
          layer { name: "steps" type: "LSTM" bottom: "h" bottom: "c" top: "s" recurrent_param {
          num_output: 2 weight_filler { type: "xavier" } } }
          layer { name: "sum" type: "Reduction" bottom: "s" top: "l" loss_weight: 0.1 })",
       {"layer \"sum\"", "its bottom \"s\" is computed from several samples"}},
      // It would divide by the extent of axis 0.
      {R"(layer { name: "moved" type: "Permute" bottom: "g" top: "p" permute_param { order: 1 } }
          layer { name: "sum" type: "EuclideanLoss" bottom: "p" bottom: "p" top: "l" })",
       {"layer \"sum\"", "its bottom \"p\" has the samples of the batch along axis 1"}},
      // Rows of several samples.
      {R"(layer { name: "rows" type: "Reshape" bottom: "g" top: "r" reshape_param { shape { dim: 3 dim: -1 } } }
          layer { name: "sum" type: "EuclideanLoss" bottom: "r" bottom: "r" top: "l" })",
       {"layer \"sum\"", "its bottom \"r\" is computed from several samples"}},
      {R"(layer { name: "own" type: "Parameter" top: "o" parameter_param { shape { dim: 12 } } }
          layer { name: "sum" type: "Reduction" bottom: "o" top: "l" loss_weight: 1 })",
       {"layer \"sum\"", "\"o\" does not depend on the batch"}},
  };
  for (const Row& row : rows) {
    const SolverFile file =
        this->file("", cat("layer { name: \"g\" type: \"InnerProduct\" bottom: \"h\" top: \"g\" ",
                           weights, " }", row.layers));
    const std::string message = error_of([&] { train(file, 2); });
    for (const char* part : row.parts) expect_part(message, part);
    train(file, 1);
  }
}

// Steps of sequences come first, then the samples; and a loss that counts positions anywhere.
TEST_F(RankLosses, SamplesAlongAnotherAxis) {
  const SolverFile file = this->file("momentum: 0.9", R"(
    layer { name: "cont" type: "DummyData" top: "c" dummy_data_param { shape { dim: 12 dim: 4 } data_filler { value: 1 } } }
    layer { name: "rows" type: "Reshape" bottom: "h" top: "rows" reshape_param { shape { dim: 0 dim: 4 dim: -1 } } }
    layer { name: "steps" type: "Permute" bottom: "rows" top: "steps" permute_param { order: 1 order: 0 order: 2 } }
    layer { name: "goes_on" type: "Permute" bottom: "c" top: "goes_on" permute_param { order: 1 order: 0 } }
    layer { name: "lstm" type: "LSTM" bottom: "steps" bottom: "goes_on" top: "lstm" recurrent_param { num_output: 5
      weight_filler { type: "xavier" } } }
    layer { name: "lstm_tanh" type: "TanH" bottom: "lstm" top: "lstm" }
    layer { name: "classes" type: "InnerProduct" bottom: "lstm" top: "classes" inner_product_param { num_output: 3 axis: 2
      weight_filler { type: "xavier" } } }
    layer { name: "each" type: "Reshape" bottom: "y" top: "each" reshape_param { shape { dim: 1 dim: -1 } } }
    layer { name: "all" type: "Tile" bottom: "each" top: "all" tile_param { axis: 0 tiles: 4 } }
    layer { name: "of_steps" type: "SoftmaxWithLoss" bottom: "classes" bottom: "all" top: "of_steps"
      softmax_param { axis: 2 } }
    layer { name: "back" type: "Permute" bottom: "lstm" top: "back" permute_param { order: 1 order: 0 order: 2 } }
    layer { name: "square" type: "EuclideanLoss" bottom: "back" bottom: "back" top: "square" }
    layer { name: "size" type: "Reduction" bottom: "back" top: "size" loss_weight: 0.01 reduction_param { operation: SUMSQ } })");
  const Seen one = train(file, 1);
  expect_near(train(file, 2), one);
  expect_near(train(file, 5), one);
}

// Each rank has its own batches, and their losses become the sums over the ranks in place.
TEST_F(RankLosses, BackwardReadsNoSums) {
  const SolverFile file = this->file(
      "", R"(layer { name: "bounded" type: "TanH" bottom: "h" top: "t" loss_weight: 0.01 })");
  expect_part(error_of([&] { train(file, 2, {}, false); }),
              "\"t\" has a loss_weight, but backward reads its values");
}

// sqrt(mean of x^2), whose backward reads the loss in its top, or the same without that. "mean": the
// attribute loss_parts, of x^2 summed over the values of a sample.
class PythonLoss : public PythonObject {
 public:
  explicit PythonLoss(const PythonClass& wanted) : kind_(wanted.param_str) {}
  void setup(const HostBlobs&, const HostBlobs&) override {}
  void reshape(const HostBlobs&, const HostBlobs& top) override { top[0]->reshape({1}); }
  void forward(uint64_t, const HostBlobs& bottom, const HostBlobs& top) override {
    const Tensor x = bottom[0]->data();
    double sum = 0;
    for (int64_t i = 0; i < x.count(); ++i) sum += x.data<float>()[i] * x.data<float>()[i];
    if (kind_ == "mean") sum /= static_cast<double>(x.shape()[0]);
    root_ = std::sqrt(sum / static_cast<double>(x.count()));
    *top[0]->data().data<float>() = static_cast<float>(has_root() ? root_ : sum);
  }
  void backward(const HostBlobs& top, const std::vector<bool>&, const HostBlobs& bottom) override {
    const Tensor x = bottom[0]->data(), dx = bottom[0]->diff();
    const float dy = *top[0]->diff().data<float>(), y = *top[0]->data().data<float>();
    const auto count = static_cast<float>(x.count()), batch = static_cast<float>(x.shape()[0]);
    const float factor = kind_ == "reads top" ? 1 / (y * count)
                         : has_root()         ? 1 / (static_cast<float>(root_) * count)
                         : kind_ == "mean"    ? 2 / batch
                                              : 2;
    for (int64_t i = 0; i < x.count(); ++i) dx.data<float>()[i] = dy * factor * x.data<float>()[i];
  }
  HostBlobs blobs() override { return {}; }
  std::string loss_parts() override { return has_root() ? "" : kind_; }

 private:
  bool has_root() const { return kind_.find("top") != std::string::npos; }
  std::string kind_;
  double root_ = 0;
};

class PythonLosses : public RankLosses {
 protected:
  PythonLosses() {
    set_python_maker([](const PythonClass& wanted) -> std::unique_ptr<PythonObject> {
      return std::make_unique<PythonLoss>(wanted);
    });
  }
  ~PythonLosses() override { set_python_maker(nullptr); }
  SolverFile with(const std::string& kind) {
    return file("base_lr: 0.005", cat(R"(layer { name: "python" type: "Python" bottom: "h" top: "p"
        loss_weight: 0.1 python_param { module: "losses" layer: "Loss" param_str: ")",
                                      kind, R"(" } })"));
  }
};

TEST_F(PythonLosses, BackwardReadsWhatForwardWrote) {
  const Seen computed = train(with("keeps top"), 2, {}, false),
             read = train(with("reads top"), 2, {}, false);
  expect_near(read, computed, 1e-6);
}

TEST_F(PythonLosses, PartsAreWhatTheClassSays) {
  for (const char* parts : {"mean", "sum"}) {
    SCOPED_TRACE(parts);
    const Seen one = train(with(parts), 1);
    for (const int ranks : {2, 5}) expect_near(train(with(parts), ranks), one);
  }
  expect_part(error_of([&] { train(with("keeps top"), 2); }), "loss_parts = \"mean\"");
  expect_part(error_of([&] { train(with("average"), 1); }),
              "loss_parts of class Loss is \"average\"; expected \"mean\" or \"sum\"");
}

// 2, 2 and 1 samples: what no layer reads has several values on some ranks and one on another.
TEST_F(RankLosses, UnreadTopsOfUnevenParts) {
  SolverFile file =
      this->file("momentum: 0.9 epoch_log: true", R"(layer { name: "unread" type: "Reduction"
      bottom: "h" top: "each" reduction_param { operation: MEAN axis: 1 } })");
  file.solver.mutable_net_param()->mutable_layer(0)->mutable_data_param()->set_batch_size(5);
  const auto weights_with = [&](int ranks) {
    std::vector<std::vector<float>> weights(ranks);
    const auto run = [&](Communicator* world) {
      Context context(Device::cpu);
      context.set_world(world);
      Seen seen;
      SolverOptions options;
      options.readers = {&seen};
      Solver solver(context, file, options);
      solver.solve();
      weights[world ? world->rank : 0] = parameters_of(solver);
    };
    if (ranks == 1) {
      run(nullptr);
    } else {
      ThreadRanks(ranks).run([&](Communicator& world) { run(&world); });
    }
    for (const std::vector<float>& of_rank : weights) EXPECT_EQ(of_rank, weights[0]);
    return weights[0];
  };
  const std::vector<float> one = weights_with(1);
  for (const int ranks : {2, 3, 4}) {
    const std::vector<float> several = weights_with(ranks);
    ASSERT_EQ(several.size(), one.size());
    for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(several[i], one[i], 2e-4) << ranks;
  }
}

}  // namespace rank_losses_test
}  // namespace crema::tests
