// Learning-rate policies against what BVLC Caffe computed, bit for bit, and the errors of
// incomplete solvers.
#include "solver/learning_rate.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "proto/solver.pb.h"

namespace crema {
namespace {

SolverParameter parse(const std::string& text) {
  SolverParameter solver;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &solver)) << text;
  return solver;
}

void expect_rates(const std::string& text, const std::vector<std::pair<int, float>>& wanted) {
  const SolverParameter solver = parse(text);
  int step = 0, next = 0;
  for (int i = 0; i <= wanted.back().first; ++i) {
    const double rate = learning_rate(solver, i, &step);
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
  int step = 0;
  for (int i = 0; i < 5; ++i) learning_rate(solver, i, &step);
  EXPECT_EQ(step, 2);
  // A snapshot brings its step back.
  step = 1;
  EXPECT_EQ(learning_rate(solver, 2, &step), 0.5);
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
}

}  // namespace
}  // namespace crema
