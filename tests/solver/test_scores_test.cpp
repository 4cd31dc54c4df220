// The means that a test phase reports.
#include "solver/test/test_scores.h"

#include <gtest/gtest.h>

#include "net/prototxt/prototxt.h"
#include "proto/solver.pb.h"
#include "support.h"

namespace crema::tests {
namespace test_scores_test {

// Keeps those of 4 values that `choice` names.
constexpr const char* kChosen = R"(
  layer { name: "data" type: "Input" top: "x" top: "choice" input_param { shape { dim: 4 dim: 1 } } }
  layer { name: "some" type: "Filter" bottom: "x" bottom: "choice" top: "some" }
)";

// ranks: each adds a contiguous part of the batches, as a test by several ranks does.
std::vector<float> means(const std::vector<std::vector<double>>& choices, size_t ranks = 1) {
  Context context(Device::cpu);
  const NetFile file = parse_net_text(kChosen, "net.prototxt");
  NetOptions options;
  options.state.set_phase(TEST);
  Net net(context, file.net, options);
  std::vector<TestScores> parts(ranks, TestScores(SolverParameter(), net));
  for (size_t batch = 0; batch < choices.size(); ++batch) {
    const double first = 10 * static_cast<double>(batch);
    const std::vector<double> x = {first, first + 1, first + 2, first + 3};
    from_doubles(context, x.data(), net.input("x"));
    from_doubles(context, choices[batch].data(), net.input("choice"));
    net.forward(batch);
    size_t rank = 0;
    while (batch >= choices.size() * (rank + 1) / ranks) ++rank;
    parts[rank].add();
  }
  std::vector<std::string> of_ranks;
  for (const TestScores& part : parts) of_ranks.push_back(part.pack());
  TestScores& scores = parts.back();  // like each of them
  if (ranks > 1) scores.merge(of_ranks);
  std::vector<float> all;
  for (const OutputValue& value : scores.outputs()) {
    EXPECT_EQ(value.name, "some");
    all.push_back(value.value);
  }
  return all;
}

TEST(TestScores, AreMeansByPlace) {
  EXPECT_EQ(means({{1, 0, 1, 0}, {0, 1, 0, 1}}), (std::vector<float>{5.5, 7.5}));
}

TEST(TestScores, AreOneMeanWhereTheNumberOfValuesVaries) {
  EXPECT_EQ(means({{1, 0, 1, 0}, {0, 1, 1, 1}, {0, 0, 0, 0}}),
            (std::vector<float>{(0 + 2 + 11 + 12 + 13) / 5.f}));
}

// Whichever rank has the batch that differs, and though a rank has none.
TEST(TestScores, OfSeveralRanksAreThoseOfOne) {
  const std::vector<double> one = {1, 0, 0, 0}, two = {0, 1, 0, 1}, three = {1, 1, 1, 0},
                            none = {0, 0, 0, 0};
  const std::vector<std::vector<std::vector<double>>> tests = {
      {two, two, two, two}, {two, two, two, one}, {one, two, two, two},
      {two, three, one},    {none, none, three},  {none, none, none},
  };
  for (size_t test = 0; test < tests.size(); ++test) {
    for (const size_t ranks : {2, 3, 5}) {
      SCOPED_TRACE(cat("test ", test, " by ", ranks, " ranks"));
      EXPECT_EQ(means(tests[test], ranks), means(tests[test]));
    }
  }
}

}  // namespace test_scores_test
}  // namespace crema::tests
