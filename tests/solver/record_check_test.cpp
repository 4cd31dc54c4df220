// Iterations that are computed again are compared with those of the record, and opened up.
#include "solver/replay/record_check.h"

#include <cmath>

#include "fixtures.h"
#include "solver/replay/opened_iteration.h"
#include "solver/replay/sample_losses.h"
#include "solver/snapshot/snapshot.h"

namespace crema::tests {
namespace record_check_test {

RecordedIterations record() {
  RecordedIterations all;
  all.losses = {3, 2, 1};
  all.weights[0] = recorded_weights({1, 2});
  all.weights[2] = recorded_weights({3, 4});
  all.weights[2].parameters.clear();
  return all;
}

struct Row {
  std::vector<Event> events;
  int64_t last_equal, losses, weights;
  std::optional<int64_t> iteration;  // where the first difference is
  bool in_weights = false;
  std::vector<int> parameters = {};
};

TEST(RecordCheck, NamesTheFirstDifference) {
  using event::Losses, event::WeightHashes;
  const Row rows[] = {
      {{WeightHashes{0, {1, 2}}, Losses{0, {3, 2}}, WeightHashes{2, {3, 4}}, Losses{2, {1, 7}}},
       2,
       3,
       2,
       {}},
      {{WeightHashes{0, {1, uint64_t{9} << 40}}, Losses{0, {3}}}, -1, 1, 1, 0, true, {1}},
      {{Losses{0, {3, 2.5}}, WeightHashes{2, {3, 5}}}, 0, 2, 1, 1},
      {{Losses{0, {3, 2}}, WeightHashes{2, {3, 5}}, Losses{2, {1}}}, 1, 3, 1, 2, true},
      // What comes before a rollback is not in the record.
      {{Losses{0, {3, 8, 9}}, event::RolledBack{.iteration = 2, .to = 1}, Losses{1, {2, 1}}},
       2,
       5,
       0,
       {}},
      {{Losses{0, {3, 8, 9}}, event::RolledBack{.iteration = 2, .to = 2}, Losses{2, {1}}},
       0,
       4,
       0,
       1},
  };
  for (const Row& row : rows) {
    RecordCheck check(record());
    for (const Event& event : row.events) check.read(event);
    SCOPED_TRACE(&row - rows);
    EXPECT_EQ(check.last_equal(), row.last_equal);
    EXPECT_EQ(check.losses(), row.losses);
    EXPECT_EQ(check.weights(), row.weights);
    ASSERT_EQ(check.first().has_value(), row.iteration.has_value());
    if (!check.first()) continue;
    EXPECT_EQ(check.first()->iteration, *row.iteration);
    EXPECT_EQ(check.first()->weights, row.in_weights);
    EXPECT_EQ(check.first()->parameters, row.parameters);
  }
}

// The losses of samples alone are those of the batch: their mean, for losses that are means.
TEST(SampleLosses, AreThePartsOfTheLoss) {
  struct Case {
    const char* loss;
    bool divides;
  };
  const Case cases[] = {
      {R"(layer { name: "loss" type: "EuclideanLoss" bottom: "z" bottom: "y" top: "loss" })", true},
      {R"(layer { name: "loss" type: "SigmoidCrossEntropyLoss" bottom: "z" bottom: "y" top: "loss" })",
       true},
      {R"(layer { name: "loss" type: "SmoothL1Loss" bottom: "z" bottom: "y" top: "loss" loss_weight: 3 })",
       true},
      // Its centres are learned.
      {R"(layer { name: "l" type: "ArgMax" bottom: "y" top: "l" }
          layer { name: "loss" type: "CenterLoss" bottom: "z" bottom: "l" top: "loss" center_loss_param { num_output: 3 } })",
       false},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.loss);
    std::string net = kNet;
    net = net.substr(0, net.find("layer { name: \"loss\"")) + one.loss;
    Context context(Device::cpu);
    SolverOptions options;
    options.net.keep_blobs = true;
    Solver solver(context, solver_file("max_iter: 1 random_seed: 3", net), options);
    SampleLosses losses(solver.net());
    ASSERT_EQ(losses.samples() > 0, one.divides);
    if (!one.divides) continue;
    solver.net().forward(0);
    double sum = 0;
    for (const double loss : losses.losses()) sum += loss;
    EXPECT_NEAR(sum / static_cast<double>(losses.samples()), solver.net().loss(), 1e-5);
  }
}

TEST(IterationOpener, ShowsWhatTheIterationDoes) {
  Context context(Device::cpu);
  SolverOptions options;
  options.net.keep_blobs = true;
  Solver solver(context, solver_file("max_iter: 9 random_seed: 3 iter_size: 2 momentum: 0"),
                options);
  solver.step(2);
  IterationOpener opener(solver, {.rgb = false, .dumped = {"z", "z:grad", "ip2/0", "ip2/0:grad"}});
  const std::vector<float> before = parameters_of(solver);
  const OpenedIteration opened = opener.open();
  const std::vector<float> after = parameters_of(solver);
  EXPECT_EQ(opened.iteration, 2);
  EXPECT_EQ(solver.iteration(), 3);
  EXPECT_EQ(opened.samples.size(), 12u);
  for (size_t i = 1; i < opened.samples.size(); ++i)
    EXPECT_GE(opened.samples[i - 1].loss, opened.samples[i].loss);
  double mean = 0;
  for (const OpenedSample& sample : opened.samples) mean += sample.loss / 12;
  EXPECT_NEAR(mean, opened.loss, 1e-5);
  ASSERT_EQ(opened.tensors.size(), 4u);
  EXPECT_EQ(opened.tensors[0].shape, (Shape{6, 3}));
  // Plain SGD without momentum: the update is the rate times the gradient.
  double squares = 0;
  for (const float value : opened.tensors[3].values) squares += static_cast<double>(value) * value;
  const OpenedParameter& ip2 = opened.parameters[2];
  EXPECT_EQ(ip2.layer, "ip2");
  EXPECT_NEAR(ip2.gradient, std::sqrt(squares), 1e-5);
  EXPECT_NEAR(ip2.update, 0.1 * ip2.gradient, 1e-5);
  double moved = 0;
  for (size_t i = 0; i < after.size(); ++i) moved += std::pow(after[i] - before[i], 2);
  double updates = 0;
  for (const OpenedParameter& one : opened.parameters) updates += one.update * one.update;
  EXPECT_NEAR(std::sqrt(moved), std::sqrt(updates), 1e-5);
  for (const OpenedBlob& blob : opened.blobs) EXPECT_EQ(blob.not_finite, 0) << blob.blob;
}

TEST(IterationOpener, NamesATensorThatIsNotThere) {
  Context context(Device::cpu);
  SolverOptions options;
  options.net.keep_blobs = true;
  Solver solver(context, solver_file("max_iter: 9 random_seed: 3"), options);
  IterationOpener opener(solver, {.rgb = false, .dumped = {"zz"}});
  expect_part(error_of([&] { opener.open(); }), "zz");
}

}  // namespace record_check_test
}  // namespace crema::tests
