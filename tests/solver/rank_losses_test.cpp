// Losses of several ranks: what they learn where ranks share a batch, and what is refused.
#include <gtest/gtest.h>

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
      {R"(layer { name: "valid" type: "SoftmaxWithLoss" bottom: "g" bottom: "y" top: "l"
          loss_param { ignore_label: 1 } })",
       {"layer \"valid\"", "the loss \"l\" cannot be combined from the parts of 2 ranks",
        "normalization: BATCH_SIZE"}},
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

// Each rank has batches of its own, and their losses become the sums over the ranks in place.
TEST_F(RankLosses, BackwardReadsNoSums) {
  const SolverFile file = this->file(
      "", R"(layer { name: "bounded" type: "TanH" bottom: "h" top: "t" loss_weight: 0.01 })");
  expect_part(error_of([&] { train(file, 2, {}, false); }),
              "\"t\" has a loss_weight, but backward reads its values");
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
