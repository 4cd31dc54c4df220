// Rates: steps, what they are told of losses and tests, and what a snapshot keeps of them.
#include "solver/rates/rates.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "proto/solver.pb.h"

namespace crema {
namespace rates_test {

SolverParameter parse(const std::string& text) {
  SolverParameter solver;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &solver)) << text;
  return solver;
}

TEST(Rates, AheadAreThoseThatCome) {
  for (const char* policy :
       {"lr_policy: 'multistep' gamma: 0.5 stepvalue: 3 stepvalue: 4 stepvalue: 9",
        "lr_policy: 'step' gamma: 0.5 stepsize: 4", "lr_policy: 'inv' gamma: 0.1 power: 0.75",
        "lr_policy: 'cosine' max_iter: 12 warmup_iter: 3"}) {
    const SolverParameter solver = parse(std::string("base_lr: 0.1 ") + policy);
    Rates rates(solver);
    const std::vector<double> ahead = rates.ahead(0, 12);
    for (int64_t i = 0; i < 12; ++i) {
      EXPECT_EQ(rates.at(i), ahead[i]) << policy << ", iteration " << i;
      EXPECT_EQ(rates.advance(i), ahead[i]) << policy << ", iteration " << i;
    }
  }
}

TEST(Rates, StepsAreTakenOnce) {
  const SolverParameter solver =
      parse("base_lr: 1 lr_policy: 'multistep' gamma: 0.5 stepvalue: 2 stepvalue: 5");
  Rates rates(solver);
  std::vector<int64_t> at;
  for (int64_t i = 0; i < 8; ++i) {
    rates.advance(i);
    if (const auto step = rates.take_step(i)) {
      EXPECT_EQ(step->step, static_cast<int>(at.size()) + 1);
      at.push_back(i);
    }
  }
  EXPECT_EQ(at, (std::vector<int64_t>{2, 5}));
}

TEST(Rates, AnEpochGivesTheStep) {
  const SolverParameter solver =
      parse("base_lr: 1 lr_policy: 'step' gamma: 0.5 stepsize: 3 stepsize_epoch: 1");
  EXPECT_EQ(Rates(solver, {10, 4}).ahead(0, 6), (std::vector<double>{1, 1, 1, 0.5, 0.5, 0.25}));
}

TEST(Rates, PlateauFollowsLosses) {
  const SolverParameter solver =
      parse("base_lr: 1 lr_policy: 'plateau' gamma: 0.5 plateau_winsize: 2 plateau_winsize: 2");
  Rates rates(solver);
  EXPECT_TRUE(rates.follows_losses());
  const uint64_t version = rates.version();
  for (int64_t i = 0; i < 4; ++i) rates.observe_loss(3, i);
  EXPECT_EQ(rates.advance(4), 0.5);
  EXPECT_EQ(rates.steps(), 1);
  EXPECT_EQ(rates.version(), version);  // a device sees the same losses

  // Where a device observes them, its state counts.
  Plateau far = rates.plateau();
  far.step = 2;
  rates.follow_device([&] { return far; });
  rates.observe_loss(3, 20);
  EXPECT_EQ(rates.steps(), 1);
  EXPECT_EQ(rates.at(21), 0.25);
  rates.read_device();
  EXPECT_EQ(rates.steps(), 2);
}

TEST(Rates, TestsLetThemFall) {
  const SolverParameter solver = parse(
      "base_lr: 1 lr_policy: 'plateau' gamma: 0.5 plateau_winsize: 2 "
      "warmup_iter: 3 plateau_test {}");
  Rates rates(solver);
  EXPECT_FALSE(rates.follows_losses());
  EXPECT_FALSE(rates.heeds_tests(2));
  EXPECT_TRUE(rates.heeds_tests(3));
  const uint64_t version = rates.version();
  EXPECT_FALSE(rates.observe_tests(1));
  EXPECT_EQ(rates.version(), version);
  EXPECT_TRUE(rates.observe_tests(2));
  EXPECT_NE(rates.version(), version);
  EXPECT_FALSE(rates.observe_tests(9));  // there is one step only
  EXPECT_EQ(rates.advance(5), 0.5);

  const SolverParameter early =
      parse("base_lr: 1 lr_policy: 'stepearly' gamma: 0.5 stepearly: 2 test_interval: 1");
  Rates falling(early);
  for (const float score : {0.5f, 0.4f, 0.5f}) falling.observe_score(score);
  EXPECT_EQ(falling.advance(3), 0.5);
}

TEST(Rates, ASnapshotKeepsThem) {
  for (const char* text :
       {"base_lr: 1 lr_policy: 'stepearly' gamma: 0.5 stepearly: 1 test_interval: 1",
        "base_lr: 1 lr_policy: 'plateau' gamma: 0.5 plateau_winsize: 1 plateau_winsize: 5",
        "base_lr: 1 lr_policy: 'multistep' gamma: 0.5 stepvalue: 2 stepvalue: 9"}) {
    const SolverParameter solver = parse(text);
    Rates before(solver);
    for (int64_t i = 0; i < 4; ++i) {
      before.observe_loss(3, i);
      before.observe_score(0.1f);
      before.advance(i);
    }
    SolverState state;
    before.store(&state);
    Rates after(solver);
    after.restore(state, 4);
    EXPECT_EQ(after.steps(), before.steps()) << text;
    EXPECT_EQ(after.ahead(4, 8), before.ahead(4, 8)) << text;
    EXPECT_FALSE(after.take_step(4)) << text;
    state.set_rollback_scale(0.5f);  // on_divergence: ROLLBACK
    after.restore(state, 4);
    EXPECT_EQ(after.at(4), before.at(4) / 2) << text;
  }
}

}  // namespace rates_test
}  // namespace crema
