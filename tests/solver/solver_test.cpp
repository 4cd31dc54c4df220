// The training loop: its messages and their times, requests to stop, and the errors of solvers that
// cannot run.
#include <cmath>

#include "fixtures.h"

namespace crema::tests {
namespace solver_test {

struct Session {
  explicit Session(const std::string& more, SolverOptions options = {},
                   const std::string& net = kNet)
      : context(Device::cpu) {
    context.set_log(log);
    solver.emplace(context, solver_file(more, net), std::move(options));
    log.all.clear();
  }
  Context context;
  Lines log;
  std::optional<Solver> solver;
};

// The line without measured values.
std::string shape_of(const std::string& line) {
  std::string shape;
  bool first = true;
  for (const std::string& word : split(line, ' ')) {
    const bool number = !word.empty() &&
                        word.find_first_not_of("-+.0123456789e") == std::string::npos &&
                        word.find_first_of("0123456789") != std::string::npos &&
                        word.find('.') != std::string::npos;
    shape += (first ? "" : " ") + (number ? "?" : word);
    first = false;
  }
  return shape;
}

TEST(Solver, SaysWhatCaffeSays) {
  Session run(
      "test_iter: 2 test_interval: 2 display: 2 average_loss: 2 max_iter: 4 random_seed: 3 "
      "snapshot_after_train: false "
      "test_compute_loss: true");
  run.solver->solve();
  const std::vector<std::string> wanted = {"Solving small",
                                           "Learning Rate Policy: step",
                                           "Iteration 0, Testing net (#0)",
                                           "Test loss: ",
                                           "    Test net output #0: loss = ",
                                           "Iteration 0 (0 iter/s, ",
                                           "    Train net output #0: loss = ",
                                           "Iteration 0, lr = 0.1",
                                           "Iteration 2, Testing net (#0)",
                                           "Test loss: ",
                                           "    Test net output #0: loss = ",
                                           "Iteration 2 (",
                                           "    Train net output #0: loss = ",
                                           "Iteration 2, lr = 0.1",
                                           "Iteration 4, loss = ",
                                           "Iteration 4, Testing net (#0)",
                                           "Test loss: ",
                                           "    Test net output #0: loss = ",
                                           "Optimization Done."};
  ASSERT_EQ(run.log.all.size(), wanted.size()) << join(run.log.all, "\n");
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_TRUE(starts_with(run.log.all[i], wanted[i])) << run.log.all[i];
  EXPECT_TRUE(
      ends_with(run.log.all[11], "s/2 iters), loss = " + split(run.log.all[11], ' ').back()));
}

TEST(Solver, LinesOfEvents) {
  Lines log;
  LogReader reader(log);
  reader.read(event::Display{
      20, 12.3456789, 8.1, 100, 0.260441234, {{"loss", 0.25f, 2}, {"accuracy", 0.9f, 0}}});
  reader.read(event::LearningRate{20, 0.00992565});
  reader.read(event::LearningRateStep{"multistep", 6, 1});
  reader.read(event::GradientsClipped{6, 2.5, 1, 0.4});
  reader.read(
      event::Snapshot{15, event::Snapshot::Part::weights, false, "tiny_iter_15.caffemodel"});
  reader.read(
      event::Snapshot{15, event::Snapshot::Part::state, true, "tiny_iter_15.solverstate.h5"});
  reader.read(event::Restored{"Adam", 15});
  reader.read(event::End{15, true});
  const std::vector<std::string> wanted = {
      "Iteration 20 (12.3457 iter/s, 8.1s/100 iters), loss = 0.260441",
      "    Train net output #0: loss = 0.25 (* 2 = 0.5 loss)",
      "    Train net output #1: accuracy = 0.9",
      "Iteration 20, lr = 0.00992565",
      "MultiStep Status: Iteration 6, step = 1",
      "Gradient clipping: scaling down gradients (L2 norm 2.5 > 1) by scale factor 0.4",
      "Snapshotting to binary proto file tiny_iter_15.caffemodel",
      "Snapshotting solver state to HDF5 file tiny_iter_15.solverstate.h5",
      "SGDSolver: restoring history",
      "Optimization stopped early."};
  EXPECT_EQ(log.all, wanted);
}

TEST(Solver, SeveralTestNetsShareTheTrainedWeights) {
  Session run(
      "test_iter: 1 test_iter: 3 test_interval: 5 max_iter: 5 random_seed: 1 snapshot_after_train: "
      "false");
  ASSERT_EQ(run.solver->test_nets().size(), 2u);
  run.solver->step(3);
  for (const auto& net : run.solver->test_nets()) {
    EXPECT_EQ(net->parameters()[0].data.raw(), run.solver->net().parameters()[0].data.raw());
  }
}

TEST(Solver, ATestNetWithoutBatchesIsNeverTested) {
  Session run(
      "test_iter: 0 test_iter: 1 test_interval: 5 max_iter: 2 random_seed: 1 "
      "snapshot_after_train: false");
  ASSERT_EQ(run.solver->test_nets().size(), 1u);
  run.solver->solve();
  EXPECT_NE(std::find(run.log.all.begin(), run.log.all.end(), "Iteration 0, Testing net (#1)"),
            run.log.all.end());
  Session none("test_iter: 0 max_iter: 2 random_seed: 1 snapshot_after_train: false");
  none.solver->solve();
  EXPECT_EQ(none.solver->iteration(), 2);
}

TEST(Solver, StopsWhenAsked) {
  int asked = 0;
  SolverOptions options;
  options.action = [&] { return ++asked == 3 ? Action::stop : Action::none; };
  Session run("max_iter: 100 random_seed: 1 snapshot_after_train: false", options);
  run.solver->solve();
  EXPECT_EQ(run.solver->iteration(), 3);
  EXPECT_EQ(run.log.all.back(), "Optimization stopped early.");
}

TEST(Solver, ATestCanBeInterrupted) {
  int asked = 0;
  SolverOptions options;
  options.action = [&] { return ++asked == 2 ? Action::stop : Action::none; };
  Session run(
      "max_iter: 100 test_iter: 9 test_interval: 10 random_seed: 1 snapshot_after_train: false",
      options);
  run.solver->solve();
  EXPECT_EQ(run.solver->iteration(), 0);
  EXPECT_EQ(run.log.all[3], "Test interrupted.");
}

TEST(Solver, DebugInfo) {
  Session run("max_iter: 2 random_seed: 1 display: 2 debug_info: true snapshot_after_train: false");
  run.solver->step(2);
  const auto& lines = run.log.all;
  std::vector<std::string> shapes;
  for (const std::string& line : lines) shapes.push_back(shape_of(line));
  const std::vector<std::string> wanted = {"    [Forward] Layer data, top blob x data: ?",
                                           "    [Forward] Layer data, top blob y data: ?",
                                           "    [Forward] Layer ip1, top blob h data: ?",
                                           "    [Forward] Layer ip1, param blob 0 data: ?"};
  ASSERT_GT(shapes.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(shapes[i], wanted[i]);
  const auto count = [&](const char* start) {
    return std::count_if(lines.begin(), lines.end(),
                         [&](const std::string& line) { return starts_with(line, start); });
  };
  EXPECT_EQ(count("    [Forward] Layer"), 11);  // only the displayed iteration
  EXPECT_EQ(count("    [Backward] Layer"), 8);
  EXPECT_EQ(count("    [Backward] All net params (data, diff): L1 norm = ("), 1);
  EXPECT_EQ(count("    [Update] Layer "), 4);
}

std::string construction_error(const SolverFile& file) {
  Context context(Device::cpu);
  return error_of([&] { Solver solver(context, file); });
}

TEST(Solver, SolversThatCannotRun) {
  const std::string rate = "base_lr: 1 lr_policy: \"fixed\" ";
  const auto error = [&](const std::string& text) {
    return construction_error(parse_solver_text(text, "s.prototxt"));
  };
  expect_part(error(rate), "no training net");
  expect_part(error(rate + "net: \"a\" train_net: \"b\""), "given 2 times, by train_net and net");
  expect_part(error(rate + "net: \"nowhere.prototxt\""), "does not exist");
  expect_part(error(rate + "net: \"a\" iter_size: 0"), "iter_size is 0");
  expect_part(error(rate + "\naverage_loss: 0 net: \"a\""), "s.prototxt:2:1");
  expect_part(error(rate + "net: \"a\" type: \"Adm\""),
              "unknown solver type \"Adm\" (did you mean \"Adam\"?)");
  expect_part(error(rate + "net: \"a\" snapshot: 1 snapshot_prefix: \"/nowhere/at/all\""),
              "snapshot_prefix");
  expect_part(error(rate + "net: \"a\" snapshot: 1 snapshot_prefix: \"/nowhere/at/all\""),
              "the folder /nowhere/at does not exist");
  expect_part(construction_error(solver_file("test_iter: 1")), "test_interval is 0");
  expect_part(construction_error(solver_file("test_iter: 0 test_iter: 1")), "test_interval is 0");
  expect_part(construction_error(solver_file("test_iter: -1 test_interval: 5")),
              "test_iter is -1: it counts batches");
  expect_part(construction_error(solver_file(
                  "test_iter: 1 test_interval: 1 test_state { level: 1 } test_state { level: 2 }")),
              "test_state is given 2 times, for 1 test net");
  expect_part(construction_error(solver_file("type: \"AdaGrad\" momentum: 0.9")), "no momentum");
  expect_part(construction_error(solver_file("regularization_type: \"L3\"")),
              "regularization_type \"L3\"");
  expect_part(construction_error(solver_file("\n  train_state { phase: TEST }")),
              "solver.prototxt:19:3: the net that is trained has phase: TEST");
  expect_part(construction_error(solver_file("", cat("state { phase: TEST }", kNet))),
              "the net that is trained has phase: TEST");
  Session run("random_seed: 1");
  expect_part(error_of([&] { run.solver->solve(); }), "max_iter is missing");
}

TEST(Solver, ANetWithoutALossIsNamed) {
  Context context(Device::cpu);
  Lines log;
  context.set_log(log);
  const std::string net(kNet);
  Solver solver(context,
                solver_file("random_seed: 1", net.substr(0, net.find("layer { name: \"loss\""))));
  ASSERT_EQ(log.warnings.size(), 1u);
  expect_part(log.warnings[0], "nothing will be learned");
}

TEST(Solver, TheClocksSeedIsLoggedAndRepeats) {
  Session first("max_iter: 3");
  first.solver->step(3);
  Session second(cat("max_iter: 3 random_seed: ", first.solver->seed()));
  second.solver->step(3);
  EXPECT_EQ(parameters_of(*first.solver), parameters_of(*second.solver));
}

}  // namespace solver_test
}  // namespace crema::tests
