// RateSearch on losses with known curves, and a run whose rate it watches.
#include "solver/readers/rate_search.h"

#include <cmath>

#include "fixtures.h"

namespace crema::tests {
namespace rate_search_test {

struct Curve {
  const char* name;
  double (*loss)(double power, int i);  // at a rate of 10^power
  double steepest, minimum;             // powers of ten; nan: nothing is proposed
  bool diverges;
};

double noise(int i) { return 0.02 * std::sin(i * 12.9898); }

const Curve kCurves[] = {
    {"a valley that ends in a wall",
     [](double power, int i) {
       const double fall = 1 / (1 + std::exp(6 * (power + 2)));  // steepest at 0.01
       return 0.3 + 2 * fall + noise(i) + (power > -0.5 ? std::pow(100, power + 0.5) - 1 : 0);
     },
     -2, -0.6, true},
    {"still falling at the end", [](double power, int) { return 5 - power; }, NAN, 1, false},
    {"nothing but noise", [](double, int i) { return 2.3 + noise(i); }, NAN, NAN, false},
    {"no number after a fall",
     [](double power, int i) { return power > 0 ? NAN : 2 - std::exp(power) + noise(i) / 10; }, NAN,
     0, true},
    {"a loss below zero", [](double power, int) { return -3 + (power + 1) * (power + 1) / 9; }, NAN,
     -1, false},
};

TEST(RateSearch, FindsWhatTheCurveHas) {
  for (const Curve& curve : kCurves) {
    SCOPED_TRACE(curve.name);
    RateSearch search;
    const int count = 140;
    int sent = 0;
    for (; sent < count && !search.diverged(); ++sent) {
      const double power = -6 + 7.0 * sent / (count - 1);
      event::Display display;
      display.iteration = sent;
      display.loss = curve.loss(power, sent);
      search.read(display);
      search.read(event::LearningRate{sent, std::pow(10, power)});
    }
    EXPECT_EQ(search.diverged(), curve.diverges);
    std::vector<RatePoint> points = search.points();
    ASSERT_EQ(points.size(), static_cast<size_t>(sent));
    const RateProposal found = rate_proposal(&points);
    if (std::isnan(curve.minimum)) {
      EXPECT_EQ(found.proposed, 0);
      continue;
    }
    EXPECT_NEAR(std::log10(found.minimum), curve.minimum, 0.4);
    EXPECT_DOUBLE_EQ(found.proposed, found.minimum / 10);
    EXPECT_EQ(found.at_end, std::string(curve.name) == "still falling at the end" ||
                                std::string(curve.name) == "no number after a fall");
    if (!std::isnan(curve.steepest)) {
      EXPECT_NEAR(std::log10(found.steepest), curve.steepest, 0.2);
    }
  }
}

TEST(RateSearch, WithoutLossesProposesNothing) {
  std::vector<RatePoint> none;
  EXPECT_EQ(rate_proposal(&none).proposed, 0);
}

TEST(RateSearch, EndsATrainingWhoseLossDiverges) {
  SolverFile file = solver_file("display: 1 random_seed: 3 on_divergence: IGNORE max_iter: 60");
  file.solver.set_lr_policy("exp");
  file.solver.set_base_lr(1e-3f);
  file.solver.set_gamma(1.5f);
  Context context(Device::cpu);
  RateSearch search;
  SolverOptions options;
  options.readers = {&search};
  options.action = [&search] { return search.diverged() ? Action::stop : Action::none; };
  Solver solver(context, file, options);
  solver.step(60);
  EXPECT_TRUE(search.diverged());
  EXPECT_LT(solver.iteration(), 60);
  ASSERT_EQ(search.points().size(), static_cast<size_t>(solver.iteration()));
  EXPECT_FLOAT_EQ(static_cast<float>(search.points()[4].rate), 1e-3f * 1.5f * 1.5f * 1.5f * 1.5f);
}

}  // namespace rate_search_test
}  // namespace crema::tests
