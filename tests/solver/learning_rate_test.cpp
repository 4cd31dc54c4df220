// Learning-rate policies against what BVLC Caffe computed, bit for bit, and the errors of
// incomplete solvers.
#include "solver/rates/learning_rate.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "proto/solver.pb.h"
#include "solver/rates/schedules.h"

namespace crema {
namespace learning_rate_test {

SolverParameter parse(const std::string& text) {
  SolverParameter solver;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &solver)) << text;
  return solver;
}

void expect_rates(const std::string& text, const std::vector<std::pair<int, float>>& wanted) {
  const SolverParameter solver = parse(text);
  RateState state = first_rate_state(solver);
  int next = 0;
  for (int i = 0; i <= wanted.back().first; ++i) {
    const double rate = learning_rate(solver, i, &state);
    if (i != wanted[next].first) continue;
    EXPECT_EQ(static_cast<float>(rate), wanted[next].second) << text << ", iteration " << i;
    ++next;
  }
}

std::string error_of(const std::string& text) {
  try {
    check_learning_rate(parse(text));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(LearningRate, AgreesWithCaffe) {
  expect_rates("base_lr: 0.01 lr_policy: \"fixed\"", {{0, 0.01f}, {999, 0.01f}});
  expect_rates("base_lr: 0.08 lr_policy: \"exp\" gamma: 0.93 max_iter: 30", {{1, 0.0744000003f},
                                                                             {4, 0.0598441623f},
                                                                             {7, 0.0481360704f},
                                                                             {11, 0.0360082872f},
                                                                             {15, 0.026936071f},
                                                                             {23, 0.0150729362f},
                                                                             {29, 0.00975204259f}});
  expect_rates("base_lr: 0.05 lr_policy: \"inv\" gamma: 0.1 power: 0.75 max_iter: 30",
               {{1, 0.0465506241f},
                {4, 0.0388484746f},
                {7, 0.0335840695f},
                {11, 0.0286619365f},
                {15, 0.0251486693f},
                {23, 0.0204213541f},
                {29, 0.018016547f}});
  expect_rates(
      "base_lr: 0.05 lr_policy: \"multistep\" gamma: 0.3 stepvalue: 4 stepvalue: 11 stepvalue: 25 "
      "max_iter: 30",
      {{1, 0.0500000007f},
       {4, 0.0150000006f},
       {7, 0.0150000006f},
       {11, 0.00450000027f},
       {15, 0.00450000027f},
       {23, 0.00450000027f},
       {29, 0.00135000015f}});
  expect_rates("base_lr: 0.05 lr_policy: \"poly\" power: 1.5 max_iter: 30",
               {{1, 0.0475209467f},
                {4, 0.0403411388f},
                {7, 0.0335644744f},
                {11, 0.0252010431f},
                {15, 0.0176776703f},
                {23, 0.00563553628f},
                {29, 0.000304290705f}});
  expect_rates("base_lr: 0.08 lr_policy: \"sigmoid\" gamma: 0.4 stepsize: 15 max_iter: 30",
               {{1, 0.000294739206f},
                {4, 0.000970274734f},
                {7, 0.00313325762f},
                {11, 0.0134385284f},
                {15, 0.0399999991f},
                {23, 0.0768667385f},
                {29, 0.0797052607f}});
  expect_rates("base_lr: 0.08 lr_policy: \"step\" gamma: 0.5 stepsize: 7 max_iter: 30",
               {{1, 0.0799999982f},
                {4, 0.0799999982f},
                {7, 0.0399999991f},
                {11, 0.0399999991f},
                {15, 0.0199999996f},
                {23, 0.00999999978f},
                {29, 0.00499999989f}});
}

TEST(LearningRate, MultistepCountsItsSteps) {
  const SolverParameter solver =
      parse("base_lr: 1 lr_policy: \"multistep\" gamma: 0.5 stepvalue: 2 stepvalue: 3");
  RateState state;
  for (int i = 0; i < 5; ++i) learning_rate(solver, i, &state);
  EXPECT_EQ(state.current_step, 2);
  // A snapshot brings its step back.
  state.current_step = 1;
  EXPECT_EQ(learning_rate(solver, 2, &state), 0.5);
}

// Worked out by hand.
TEST(LearningRate, PoliciesOfForksAndOfToday) {
  struct Row {
    const char* text;
    std::vector<std::pair<int, double>> rates;
  };
  const std::vector<Row> rows = {
      {"lr_policy: \"multifixed\" stagelr: 0.1 stagelr: 0.01 stagelr: 0.001 stageiter: 3 "
       "stageiter: 5 stageiter: 8",
       {{0, 0.1}, {3, 0.1}, {4, 0.01}, {5, 0.01}, {6, 0.001}, {20, 0.001}}},
      {"lr_policy: \"vstep\" vstep_lr: 0.1 vstep_lr: 0.01 vstep_lr: 0.001 vstep_size: 3 "
       "vstep_size: 2 vstep_size: 3",
       {{0, 0.1}, {3, 0.1}, {4, 0.01}, {5, 0.01}, {6, 0.001}, {20, 0.001}}},
      {"base_lr: 1 lr_policy: \"fixed\" warmup_iter: 4 warmup_start_lr: 0.2",
       {{0, 0.2}, {1, 0.4}, {2, 0.6}, {3, 0.8}, {4, 1}, {9, 1}}},
      {"base_lr: 1 lr_policy: \"fixed\" rampup_interval: 4 rampup_lr: 0.2",
       {{0, 0.2}, {1, 0.25}, {2, 0.4}, {3, 0.65}, {4, 1}}},
      {"base_lr: 1 lr_policy: \"step\" gamma: 0.1 stepsize: 2 min_lr: 0.05",
       {{0, 1}, {2, 0.1}, {4, 0.05}}},
      {"base_lr: 1 lr_policy: \"poly\" power: 2 max_iter: 10 min_lr: 0.2",
       {{0, 1}, {5, 0.4}, {10, 0.2}}},
      {"base_lr: -1 lr_policy: \"fixed\"", {{0, -1}}},
      {"base_lr: 1 lr_policy: \"cosine\" max_iter: 4 min_lr: 0.2",
       {{0, 1}, {1, 0.882842712}, {2, 0.6}, {3, 0.317157288}, {4, 0.2}, {9, 0.2}}},
      {"base_lr: 1 lr_policy: \"cosine\" max_iter: 6 warmup_iter: 2",
       {{0, 0}, {1, 0.5}, {2, 1}, {4, 0.5}, {5, 0.146446609}}},
      {"base_lr: 1 lr_policy: \"sgdr\" period: 2 p_mult: 2 lr_mult: 0.5",
       {{0, 1}, {1, 0.5}, {2, 0.5}, {3, 0.426776695}, {4, 0.25}, {6, 0.25}, {10, 0.125}}},
      {"base_lr: 1 lr_policy: \"sgdr\" max_iter: 4", {{0, 1}, {2, 0.5}, {3, 0.146446609}}},
      {"base_lr: 1 lr_policy: \"onecycle\" max_iter: 8 onecycle_rise: 0.25 onecycle_start_lr: 0.2 "
       "onecycle_final_lr: 0.1",
       {{0, 0.2}, {1, 0.6}, {2, 1}, {5, 0.55}, {8, 0.1}}},
      {"base_lr: 1 lr_policy: \"onecycle\" max_iter: 10", {{0, 0.04}, {3, 1}, {10, 4e-6}}},
  };
  for (const auto& [text, rates] : rows) {
    const SolverParameter solver = parse(text);
    EXPECT_EQ(error_of(text), "") << text;
    RateState state = first_rate_state(solver);
    for (const auto& [iteration, wanted] : rates) {
      EXPECT_FLOAT_EQ(static_cast<float>(learning_rate(solver, iteration, &state)),
                      static_cast<float>(wanted))
          << text << ", iteration " << iteration;
    }
  }
}

TEST(LearningRate, PlateauFallsWhenTheLossDoesNot) {
  const SolverParameter solver =
      parse("base_lr: 1 lr_policy: \"plateau\" gamma: 0.5 plateau_winsize: 2 plateau_winsize: 3");
  RateState state = first_rate_state(solver);
  const std::vector<float> losses = {5, 4, 4.5f, 4.2f, 3, 3, 3, 3.5f, 9, 9, 9};
  const std::vector<double> wanted = {1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25};
  for (int i = 0; i < static_cast<int>(losses.size()); ++i) {
    state.plateau.observe(losses[i], i);
    EXPECT_EQ(learning_rate(solver, i, &state), wanted[i]) << i;
  }
}

TEST(LearningRate, StepEarlyFallsWhenTestsDoNotImprove) {
  const SolverParameter solver =
      parse("base_lr: 1 lr_policy: \"stepearly\" gamma: 0.5 stepearly: 2 test_interval: 10");
  RateState state = first_rate_state(solver);
  const std::vector<float> scores = {0.5f, 0.6f, 0.6f, 0.5f, 0.55f, 0.7f, 0.1f, 0.1f};
  const std::vector<double> wanted = {1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25};
  for (size_t i = 0; i < scores.size(); ++i) {
    observe_score(solver, scores[i], &state);
    EXPECT_EQ(learning_rate(solver, 0, &state), wanted[i]) << i;
  }
}

TEST(LearningRate, MomentumAndDecayOverTime) {
  struct Row {
    const char* text;
    const char* type;
    int iteration;
    Hyperparameters wanted;  // rate 0.04
  };
  const std::vector<Row> rows = {
      {"momentum: 0.5 weight_decay: 0.1", "SGD", 3, {0.04f, 1, 0.5f, 0.1f, 0}},
      {"momentum: 0.5 weight_decay: 0.1 regularization_type: \"decoupled\"",
       "SGD",
       3,
       {0.04f, 1, 0.5f, 0, 0.1f}},
      {"weight_decay: 0.1 regularization_type: \"NONE\"", "SGD", 3, {0.04f, 1, 0, 0, 0}},
      {"momentum: 0.5 momentum_policy: \"poly\" max_momentum: 0.9 momentum_power: 2 max_iter: 10",
       "SGD",
       5,
       {0.04f, 1, 0.6f, 0, 0}},
      {"momentum: 0.9 momentum_policy: \"step\" initial_momentum_iter: 5",
       "SGD",
       4,
       {0.04f, 1, 0.5f, 0, 0}},
      {"momentum: 0.9 momentum_policy: \"step\" initial_momentum: 0.3 initial_momentum_iter: 5",
       "SGD",
       5,
       {0.04f, 1, 0.9f, 0, 0}},
      {"momentum_policy: \"opt\"", "SGD", 5, {0.04f, 1, 0.81f, 0, 0}},
      {"momentum_policy: \"opt\" max_momentum: 0.7", "SGD", 5, {0.04f, 1, 0.7f, 0, 0}},
      {"weight_decay: 0.1 weight_decay_policy: \"poly\" max_weight_decay: 0.3 max_iter: 10",
       "SGD",
       5,
       {0.04f, 1, 0, 0.2f, 0}},
      {"weight_decay: 0.1", "Lion", 0, {0.04f, 1, 0.9f, 0, 0.1f}},
      {"weight_decay: 0.1 adamw_decay: 0.3 momentum: 0",
       "ADAMW",
       0,
       {0.04f, 0.0316227766f, 0, 0.1f, 0.3f}},
      {"weight_decay: 0.1 momentum: 0.5 momentum2: 0.75",
       "AdamW",
       1,
       {0.04f, 0.881917104f, 0.5f, 0, 0.1f}},
      {"", "Muon", 0, {0.04f, 0.632455532f, 0.95f, 0, 0}},
      {"momentum: 0.5 momentum2: 0.75 rectified: true",
       "Adam",
       1,
       {0.04f, 0.881917104f, 0.5f, 0, 0, false}},
      {"momentum: 0.5 momentum2: 0.75 rectified: true",
       "Adam",
       9,
       {0.04f, 0.722884911f, 0.5f, 0, 0, true}},
  };
  for (const Row& row : rows) {
    const Hyperparameters at =
        hyperparameters_at(parse(row.text), update_rule(row.type), row.iteration, 0.04);
    EXPECT_FLOAT_EQ(at.rate, row.wanted.rate) << row.text;
    EXPECT_NEAR(at.correction, row.wanted.correction, 1e-5) << row.text;
    EXPECT_FLOAT_EQ(at.momentum, row.wanted.momentum) << row.text;
    EXPECT_FLOAT_EQ(at.penalty, row.wanted.penalty) << row.text;
    EXPECT_FLOAT_EQ(at.shrink, row.wanted.shrink) << row.text;
    EXPECT_EQ(at.divides, row.wanted.divides) << row.text;
  }
}

TEST(LearningRate, IncompleteSolvers) {
  EXPECT_EQ(error_of("base_lr: 1 lr_policy: \"fixed\""), "");
  EXPECT_NE(error_of("base_lr: 1").find("lr_policy is missing"), std::string::npos);
  EXPECT_NE(error_of("lr_policy: \"fixed\"").find("base_lr is missing"), std::string::npos);
  EXPECT_NE(error_of("base_lr: 1 lr_policy: \"setp\"").find("did you mean \"step\"?"),
            std::string::npos);
  EXPECT_NE(error_of("base_lr: 1 lr_policy: \"step\" gamma: 0.1").find("needs stepsize"),
            std::string::npos);
  EXPECT_NE(error_of("base_lr: 1 lr_policy: \"step\" gamma: 0.1 stepsize: 0").find("positive"),
            std::string::npos);
  EXPECT_NE(error_of("base_lr: 1 lr_policy: \"exp\"").find("needs gamma"), std::string::npos);
  EXPECT_NE(error_of("base_lr: 1 lr_policy: \"inv\" gamma: 1").find("needs power"),
            std::string::npos);
  EXPECT_NE(error_of("base_lr: 1 lr_policy: \"multistep\" gamma: 1").find("needs stepvalue"),
            std::string::npos);
  EXPECT_NE(error_of("base_lr: 1 lr_policy: \"poly\" power: 1").find("needs max_iter"),
            std::string::npos);
  EXPECT_NE(error_of("base_lr: 1 lr_policy: \"sigmoid\" gamma: 1").find("needs stepsize"),
            std::string::npos);
  const auto expect_error = [](const char* text, const char* part) {
    EXPECT_NE(error_of(text).find(part), std::string::npos) << error_of(text);
  };
  expect_error("lr_policy: \"multifixed\" stagelr: 1 stagelr: 2 stageiter: 3",
               "stagelr is given 2 times and stageiter 1 times");
  expect_error("lr_policy: \"vstep\" vstep_lr: 1", "needs vstep_size");
  expect_error("base_lr: 1 lr_policy: \"plateau\" gamma: 1", "needs plateau_winsize");
  expect_error("base_lr: 1 lr_policy: \"cosin\"", "did you mean \"cosine\"?");
  expect_error("base_lr: 1 lr_policy: \"StepLR\"",
               "did you mean \"step\"? Write gamma: 0.1 stepsize: 10000)");
  expect_error("base_lr: 1 lr_policy: \"sgdr\"", "period is 0");
  expect_error("base_lr: 1 lr_policy: \"stepearly\" gamma: 1", "needs stepearly");
  expect_error("base_lr: 1 lr_policy: \"fixed\" warmup_iter: 1 rampup_interval: 2", "both given");
  expect_error("base_lr: 1 lr_policy: \"onecycle\" max_iter: 5 onecycle_rise: 2",
               "onecycle_rise is 2");
}

}  // namespace learning_rate_test
}  // namespace crema
