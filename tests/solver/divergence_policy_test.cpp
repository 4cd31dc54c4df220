// What on_divergence makes of losses that are not finite.
#include "solver/divergence/divergence_policy.h"

#include <gtest/gtest.h>

#include <limits>

namespace crema {
namespace divergence_policy_test {

using Verdict = DivergencePolicy::Verdict;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

SolverParameter solver_with(SolverParameter::Divergence policy) {
  SolverParameter solver;
  solver.set_on_divergence(policy);
  solver.set_skip_most(2);
  solver.set_rollback_factor(0.5f);
  solver.set_rollback_most(3);
  return solver;
}

TEST(DivergencePolicy, StopEndsTheRun) {
  const SolverParameter solver = solver_with(SolverParameter::STOP);
  DivergencePolicy policy(solver);
  EXPECT_EQ(policy.judge(1, true), Verdict::update);
  EXPECT_EQ(policy.judge(kNan, true), Verdict::diverged);
  EXPECT_EQ(policy.judge(kNan, false), Verdict::diverged);
  EXPECT_TRUE(policy.checks_weights());
  EXPECT_FALSE(policy.may_roll_back(1));
}

TEST(DivergencePolicy, IgnoreGoesOn) {
  const SolverParameter solver = solver_with(SolverParameter::IGNORE);
  DivergencePolicy policy(solver);
  EXPECT_EQ(policy.judge(kNan, true), Verdict::ignore);
  EXPECT_FALSE(policy.checks_weights());
}

TEST(DivergencePolicy, SkipLeavesOutSomeInARow) {
  const SolverParameter solver = solver_with(SolverParameter::SKIP);
  DivergencePolicy policy(solver);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(policy.judge(kNan, true), Verdict::leave_out);
    EXPECT_EQ(policy.judge(kNan, true), Verdict::leave_out);
    EXPECT_EQ(policy.left_out(), 2);
    EXPECT_EQ(policy.judge(1, false), Verdict::update);  // no update: the row goes on
    EXPECT_EQ(policy.left_out(), 2);
    EXPECT_EQ(policy.judge(1, true), Verdict::update);
    EXPECT_EQ(policy.left_out(), 0);
  }
  EXPECT_EQ(policy.judge(kNan, false), Verdict::update);  // there is nothing to leave out
  for (int i = 0; i < 2; ++i) policy.judge(kNan, true);
  EXPECT_EQ(policy.judge(kNan, true), Verdict::diverged);
}

TEST(DivergencePolicy, RollbackCountsByTheRate) {
  const SolverParameter solver = solver_with(SolverParameter::ROLLBACK);
  DivergencePolicy policy(solver);
  EXPECT_EQ(policy.judge(kNan, true), Verdict::diverged);
  EXPECT_EQ(policy.rollbacks(1), 0);
  EXPECT_EQ(policy.rollbacks(0.25f), 2);
  EXPECT_TRUE(policy.may_roll_back(0.25f));
  EXPECT_FALSE(policy.may_roll_back(0.125f));
}

}  // namespace divergence_policy_test
}  // namespace crema
