// Automatic decisions of a run: going back and skipping updates when it diverges, stopping and
// lowering the rate when its tests no longer improve.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fixtures.h"
#include "solver/snapshot/state_file.h"
#include "solver/test/test_watch.h"

namespace crema::tests {
namespace judgement_test {

// Keeps events of these kinds.
class Kept : public EventReader {
 public:
  void read(const Event& event) override {
    if (const auto* e = std::get_if<event::RolledBack>(&event)) rollbacks.push_back(*e);
    if (const auto* e = std::get_if<event::UpdateSkipped>(&event)) skips.push_back(*e);
    if (const auto* e = std::get_if<event::EarlyStopped>(&event)) early.push_back(*e);
    if (const auto* e = std::get_if<event::LearningRate>(&event)) rates.push_back(e->rate);
    if (const auto* e = std::get_if<event::LearningRateStep>(&event)) steps.push_back(e->iteration);
  }
  std::vector<event::RolledBack> rollbacks;
  std::vector<event::UpdateSkipped> skips;
  std::vector<event::EarlyStopped> early;
  std::vector<double> rates;
  std::vector<int64_t> steps;
};

SolverFile solver_of(const Folder& folder, const std::string& more, const std::string& net = kNet) {
  return parse_solver_text(cat("net_param {", net, "}\nrandom_seed: 1 max_iter: 12 ",
                               "snapshot_prefix: \"", folder.file("net"), "\" ", more),
                           "solver.prototxt");
}

std::vector<Device> devices() {
  return gpu_count() > 0 ? std::vector<Device>{Device::cpu, Device::gpu}
                         : std::vector<Device>{Device::cpu};
}

// After one update the outputs are so large that their squares overflow.
constexpr const char* kWild = "lr_policy: \"fixed\" base_lr: 1e30 display: 1 ";

TEST(Rollback, LowersTheRateUntilTheRunHolds) {
  for (const Device device : devices()) {
    const Folder folder;
    Context context(device);
    Kept kept;
    SolverOptions options;
    options.readers = {&kept};
    const std::string text =
        cat(kWild,
            "on_divergence: ROLLBACK rollback_factor: 1e-9 rollback_most: 3 type: \"Adam\" "
            "ema_decay: 0.9 momentum: 0.9 iter_size: 2");
    Solver solver(context, solver_of(folder, text), options);
    solver.solve();
    ASSERT_EQ(kept.rollbacks.size(), 2u);
    for (const event::RolledBack& back : kept.rollbacks) {
      EXPECT_EQ(back.to, 0);
      EXPECT_TRUE(back.state.empty());
      expect_part(back.reason, "the loss is ");
    }
    EXPECT_FLOAT_EQ(kept.rollbacks[0].scale, 1e-9f);
    EXPECT_FLOAT_EQ(solver.rate(), 1e12f);
    EXPECT_EQ(solver.iteration(), 12);
    EXPECT_TRUE(std::isfinite(solver.loss()));
    for (const float weight : parameters_of(solver)) ASSERT_TRUE(std::isfinite(weight));
    // A resumed run keeps the lower rate.
    options.snapshot = folder.file("net_iter_12.solverstate");
    EXPECT_EQ(Solver(context, solver_of(folder, text), options).rate(), solver.rate());
  }
}

TEST(Rollback, GoesBackToTheLastSnapshotAndOnWithLaterData) {
  const Folder folder;
  Context context(Device::cpu);
  Kept kept;
  SolverOptions options;
  options.readers = {&kept};
  // Good up to iteration 6, then far too large.
  const std::string text =
      "lr_policy: \"multifixed\" stagelr: 0.01 stagelr: 1e30 stageiter: 6 stageiter: 12 snapshot: "
      "3 "
      "display: 1 on_divergence: ROLLBACK rollback_factor: 1e-32 rollback_most: 1";
  Solver solver(context, solver_of(folder, text), options);
  solver.solve();
  ASSERT_EQ(kept.rollbacks.size(), 1u);
  for (const event::RolledBack& back : kept.rollbacks) {
    EXPECT_EQ(back.iteration, 8);
    EXPECT_EQ(back.to, 6);
    EXPECT_EQ(back.state, folder.file("net_iter_6.solverstate"));
  }
  // 12 updates, and 3 passes up to the divergence that were for nothing.
  const SolverState state = read_solver_state(folder.file("net_iter_12.solverstate"));
  EXPECT_EQ(state.train_passes(), 12u + 3);
}

TEST(Rollback, EndsWithTheErrorAfterAsManyAsAllowed) {
  const Folder folder;
  Context context(Device::cpu);
  Kept kept;
  SolverOptions options;
  options.readers = {&kept};
  Solver solver(
      context,
      solver_of(folder,
                cat(kWild, "on_divergence: ROLLBACK rollback_factor: 0.5 rollback_most: 2")),
      options);
  const std::string message = error_of([&] { solver.solve(); });
  EXPECT_EQ(kept.rollbacks.size(), 2u);
  EXPECT_EQ(kept.rollbacks.back().number, 2);
  expect_part(message, "although the rate was multiplied by 0.25. It begins in layer \"loss\"");
}

// Filled between steps, so that one batch can be bad.
std::string fed_net() {
  const std::string net = kNet;
  return cat(
      "layer { name: \"data\" type: \"Input\" top: \"x\" top: \"y\" input_param { shape { "
      "dim: 6 dim: 5 } shape { dim: 6 dim: 3 } } }",
      net.substr(net.find("layer { name: \"ip1\"")));
}

void feed(Solver& solver, int iteration, bool bad) {
  std::vector<float> x(30), y(18);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i) + iteration);
  for (size_t i = 0; i < y.size(); ++i) y[i] = std::cos(static_cast<float>(i) - iteration);
  if (bad) y[4] = std::numeric_limits<float>::quiet_NaN();
  solver.net().set_input("x", x.data());
  solver.net().set_input("y", y.data());
}

struct Rule {
  const char* name;
  const char* fields;
};

class Skip : public testing::TestWithParam<Rule> {};

// Weights and all other state are those from before.
TEST_P(Skip, LeavesTheUpdateOfABadBatchOut) {
  for (const Device device : devices()) {
    const Folder folder;
    Context context(device);
    Kept kept;
    SolverOptions options;
    options.readers = {&kept};
    options.fills_inputs = true;
    Solver solver(
        context,
        solver_of(folder,
                  cat("lr_policy: \"fixed\" base_lr: 0.05 on_divergence: SKIP ", GetParam().fields),
                  fed_net()),
        options);
    for (int i = 0; i < 3; ++i) {
      feed(solver, i, false);
      solver.step(1);
    }
    const std::vector<float> before = parameters_of(solver);
    solver.snapshot();
    feed(solver, 3, true);
    solver.step(1);
    EXPECT_EQ(solver.iteration(), 4);
    EXPECT_EQ(parameters_of(solver), before);
    solver.snapshot();
    const SolverState good = read_solver_state(folder.file("net_iter_3.solverstate")),
                      after = read_solver_state(folder.file("net_iter_4.solverstate"));
    ASSERT_EQ(good.history_size(), after.history_size());
    for (int i = 0; i < good.history_size(); ++i)
      EXPECT_EQ(good.history(i).SerializeAsString(), after.history(i).SerializeAsString());
    for (int i = 0; i < good.average_size(); ++i)
      EXPECT_EQ(good.average(i).SerializeAsString(), after.average(i).SerializeAsString());
    ASSERT_EQ(kept.skips.size(), 1u);
    EXPECT_EQ(kept.skips[0].iteration, 3);
    feed(solver, 4, false);
    solver.step(1);
    EXPECT_NE(parameters_of(solver), before);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, Skip,
    testing::Values(Rule{"momentum", "momentum: 0.9"}, Rule{"adam", "type: \"Adam\" momentum: 0.9"},
                    Rule{"average", "momentum: 0.9 ema_decay: 0.9"},
                    Rule{"iter_size", "momentum: 0.9 iter_size: 3"},
                    Rule{"clipped", "momentum: 0.9 clip_gradients: 0.5"},
                    Rule{"lookahead", "momentum: 0.9 lookahead: true lookahead_steps: 2"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(SkipLimit, EndsWithTheErrorAfterAsManyInARow) {
  const Folder folder;
  Context context(Device::cpu);
  Kept kept;
  SolverOptions options;
  options.readers = {&kept};
  options.fills_inputs = true;
  Solver solver(
      context,
      solver_of(folder, "lr_policy: \"fixed\" base_lr: 0.05 on_divergence: SKIP skip_most: 3",
                fed_net()),
      options);
  feed(solver, 0, true);
  solver.step(2);
  feed(solver, 0, false);
  solver.step(1);  // the count begins again
  feed(solver, 0, true);
  const std::string message = error_of([&] { solver.step(9); });
  EXPECT_EQ(kept.skips.size(), 5u);
  expect_part(message,
              "in iteration 6: the loss is nan after 3 updates in a row that were left out");
  expect_part(message, "layer \"data\": its top \"y\" holds 1 nan of 18 numbers");
}

TEST(Divergence, ShowsTheBlobsBeforeTheOneItNames) {
  const Folder folder;
  Context context(Device::cpu);
  Lines log;
  context.set_log(log);
  Solver solver(context, solver_of(folder, kWild));
  error_of([&] { solver.solve(); });
  const std::string all = join(log.all, "\n");
  expect_part(all, "The blobs before it, in the order of the forward pass:");
  for (const char* blob : {"layer \"data\", top \"x\" 6x5: min -", "layer \"ip1\", top \"h\" 6x7",
                           "layer \"ip2\", top \"z\" 6x3", "layer \"loss\", top \"loss\""})
    expect_part(all, blob);
}

// A rate of 0 never gets better than the first test.
constexpr const char* kTested = "lr_policy: \"fixed\" base_lr: 0 test_iter: 1 test_interval: 2 ";

TEST(EarlyStop, EndsTheTrainingWithASnapshot) {
  for (const Device device : devices()) {
    const Folder folder;
    Context context(device);
    Kept kept;
    SolverOptions options;
    options.readers = {&kept};
    // min_change: the test data differ from test to test.
    const std::string text = cat(kTested, "early_stop { tests: 3 watch { min_change: 1e6 } }");
    Solver solver(context, solver_of(folder, text), options);
    solver.solve();
    EXPECT_TRUE(solver.stopped());
    EXPECT_EQ(solver.iteration(), 6);  // tests at 0, 2, 4 and 6
    ASSERT_EQ(kept.early.size(), 1u);
    EXPECT_EQ(kept.early[0].output, "loss");
    EXPECT_EQ(kept.early[0].tests, 3);
    EXPECT_TRUE(folder.has("net_iter_6.solverstate"));
  }
}

TEST(EarlyStop, AResumedRunCountsOn) {
  for (const char* format : {"BINARYPROTO", "HDF5"}) {
    const Folder folder;
    Context context(Device::cpu);
    const std::string text = cat(
        kTested,
        "early_stop { tests: 3 watch { min_change: 1e6 } } snapshot: 3 snapshot_format: ", format);
    SolverOptions options;
    Solver(context, solver_of(folder, text), options).step(3);  // tests at 0 and 2
    options.snapshot = folder.file(cat("net_iter_3.solverstate", format[0] == 'H' ? ".h5" : ""));
    Solver resumed(context, solver_of(folder, text), options);
    resumed.solve();
    EXPECT_EQ(resumed.iteration(), 6) << format;
  }
}

TEST(PlateauOfATest, LowersTheRateAndIsExactOverAResume) {
  for (const Device device : devices()) {
    const Folder folder;
    Context context(device);
    const std::string text =
        "lr_policy: \"plateau\" base_lr: 0.01 gamma: 0.5 plateau_winsize: 2 plateau_winsize: 1 "
        "test_iter: 1 test_interval: 2 display: 1 snapshot: 5 plateau_test { min_change: 1e6 }";
    Kept kept;
    SolverOptions options;
    options.readers = {&kept};
    Solver solver(context, solver_of(folder, text), options);
    solver.solve();
    // Tests at 0, 2, 4: two without a better value; 6: one more.
    std::vector<double> rates(12, 0.01f);
    for (size_t i = 4; i < 12; ++i) rates[i] = i < 6 ? 0.005f : 0.0025f;
    ASSERT_EQ(kept.rates.size(), rates.size());
    for (size_t i = 0; i < rates.size(); ++i) EXPECT_FLOAT_EQ(kept.rates[i], rates[i]) << i;
    EXPECT_EQ(kept.steps, (std::vector<int64_t>{4, 6}));
    options.readers.clear();
    options.snapshot = folder.file("net_iter_5.solverstate");
    Solver resumed(context, solver_of(folder, text), options);
    resumed.solve();
    EXPECT_EQ(parameters_of(resumed), parameters_of(solver));
  }
}

struct Watch {
  const char* name;
  const char* fields;  // of TestWatch
  std::vector<float> values;
  std::vector<bool> better;
  int since;
};

class Watched : public testing::TestWithParam<Watch> {};

TEST_P(Watched, CountsTheTestsSinceTheBest) {
  const Watch& row = GetParam();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Folder folder;
  Context context(Device::cpu);
  const std::string net = cat(kNet,
                              "layer { name: \"sum\" type: \"Reduction\" bottom: \"x\" top: "
                              "\"score\" include { phase: TEST } }");
  const SolverFile file = solver_of(folder, cat(kTested, "keep_best { ", row.fields, " }"), net);
  Solver solver(context, file);
  WatchedOutput watched(file, WatchedOutput::For::keep_best, solver.test_nets(), {0});
  std::vector<bool> better;
  for (const float value : row.values) {
    better.push_back(*watched.observe(0, {{watched.output(), value, 0}}));
    EXPECT_FALSE(watched.observe(1, {{watched.output(), -value, 0}}).has_value());
  }
  EXPECT_EQ(better, row.better);
  EXPECT_EQ(watched.tests_since_best(), row.since);
  EXPECT_FALSE(*watched.observe(0, {{watched.output(), nan, 0}}));
  SolverState state;
  watched.store(&state);
  WatchedOutput again(file, WatchedOutput::For::keep_best, solver.test_nets(), {0});
  again.restore(state, "state");
  EXPECT_EQ(again.best(), watched.best());
  EXPECT_EQ(again.tests_since_best(), row.since + 1);
  // Another one's place says nothing of this one.
  WatchedOutput other(file, WatchedOutput::For::early_stop, solver.test_nets(), {0});
  other.restore(state, "state");
  EXPECT_EQ(other.tests_since_best(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, Watched,
    testing::Values(
        Watch{"loss",
              "output: \"loss\"",
              {3, 2, 2, 4, 1, 5},
              {true, true, false, false, true, false},
              1},
        Watch{"score", "output: \"score\"", {3, 2, 4, 4, 4}, {true, false, true, false, false}, 2},
        Watch{"given", "output: \"score\" better: SMALLER", {3, 2, 4}, {true, true, false}, 1},
        Watch{"by_more", "output: \"score\" min_change: 1", {3, 3.5, 4.5}, {true, false, true}, 0}),
    [](const auto& info) { return std::string(info.param.name); });

struct Mistake {
  const char* name;
  const char* fields;
  const char* message;
};

class JudgementMistake : public testing::TestWithParam<Mistake> {};

TEST_P(JudgementMistake, IsAnErrorBeforeTheTrainingStarts) {
  const Folder folder;
  Context context(Device::cpu);
  const std::string message =
      error_of([&] { Solver(context, solver_of(folder, cat("\n", GetParam().fields))); });
  expect_part(message, GetParam().message);
  EXPECT_TRUE(starts_with(message, "solver.prototxt:")) << message;
}

#define CREMA_TESTED "lr_policy: \"fixed\" base_lr: 1 test_iter: 1 test_interval: 2 "
INSTANTIATE_TEST_SUITE_P(
    Rows, JudgementMistake,
    testing::Values(Mistake{"output", CREMA_TESTED "early_stop { watch { output: \"los\" } }",
                            "test net #0 has no output \"los\" (did you mean \"loss\"?)"},
                    Mistake{"net", CREMA_TESTED "early_stop { watch { test_net: 2 } }",
                            "early_stop follows test net #2, which does not exist"},
                    Mistake{"tests", CREMA_TESTED "early_stop { tests: 0 }",
                            "tests is 0, it must be at least 1"},
                    Mistake{"change", CREMA_TESTED "early_stop { watch { min_change: -1 } }",
                            "min_change is -1, it must be at least 0"},
                    Mistake{"no_tests", "lr_policy: \"fixed\" base_lr: 1 early_stop { }",
                            "but nothing is tested"},
                    Mistake{"policy", CREMA_TESTED "plateau_test { }",
                            "plateau_test needs lr_policy: \"plateau\", but it is \"fixed\""},
                    Mistake{"factor", CREMA_TESTED "rollback_factor: 1.5",
                            "rollback_factor is 1.5"},
                    Mistake{"vanishing", CREMA_TESTED "rollback_factor: 1e-20 rollback_most: 3",
                            "rollback_factor is 1e-20 and rollback_most 3"},
                    Mistake{"rollbacks", CREMA_TESTED "rollback_most: 0", "rollback_most is 0"},
                    Mistake{"skips", CREMA_TESTED "skip_most: 0", "skip_most is 0"}),
    [](const auto& info) { return std::string(info.param.name); });
#undef CREMA_TESTED

}  // namespace judgement_test
}  // namespace crema::tests
