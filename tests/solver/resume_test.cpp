// A resumed run equals an uninterrupted one bit for bit: every update rule, every policy that
// remembers something, averages and rates from norms, both formats of snapshots, both devices.
#include <gtest/gtest.h>

#include "fixtures.h"
#include "solver/snapshot/state_file.h"

namespace crema::tests {
namespace resume_test {

const char* const kStep = "lr_policy: \"step\" gamma: 0.5 stepsize: 3 ";

// Also learned if the momentum has steps; its chains continue from one iteration to the next.
const char* const kMachine = R"(
  layer { name: "rbm" type: "RBM" bottom: "x" top: "error" top: "units" loss_weight: [0.1, 0]
    rbm_param { num_output: 4 visible: GAUSSIAN persistent_chains: 5 sampling: ALL } })";

SolverFile training(const std::string& what, const std::string& format, const Folder& folder) {
  const std::string policy = what.find("lr_policy") == std::string::npos ? kStep : "";
  const std::string machine = what.find("initial_momentum") == std::string::npos ? "" : kMachine;
  const std::string rate = what.find("base_lr") == std::string::npos ? "base_lr: 0.05 " : "";
  return parse_solver_text(
      cat("net_param {", kNet, machine, "}\n", rate, policy, what,
          " weight_decay: 0.001 max_iter: 12 snapshot: 5 snapshot_prefix: \"", folder.file("net"),
          "\" snapshot_format: ", format,
          " display: 3 average_loss: 3 test_iter: 2 test_interval: 2 iter_size: 2"),
      "solver.prototxt");
}

class Resume : public testing::TestWithParam<std::tuple<const char*, const char*, Device>> {};

TEST_P(Resume, EqualsAnUninterruptedRun) {
  const auto& [what, format, device] = GetParam();
  if (device == Device::gpu && gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const Folder folder;
  const SolverFile file = training(what, format, folder);  // without a seed: the clock's
  Losses whole_losses, resumed_losses;
  std::vector<float> whole;
  uint64_t seed = 0;
  {
    Context context(device);
    SolverOptions options;
    options.readers = {&whole_losses};
    Solver solver(context, file, options);
    solver.solve();
    whole = parameters_of(solver);
    seed = solver.seed();
  }
  const std::string end = std::string(format) == "HDF5" ? ".h5" : "";
  const std::string last = folder.file("net_iter_12.solverstate" + end);
  const std::string state = read_solver_state(last).DebugString();
  Context context(device);
  SolverOptions options;
  options.readers = {&resumed_losses};
  options.snapshot = folder.file("net_iter_5.solverstate" + end);
  Solver solver(context, file, options);
  EXPECT_EQ(solver.iteration(), 5);
  EXPECT_EQ(solver.seed(), seed);
  solver.solve();
  EXPECT_EQ(parameters_of(solver), whole);
  EXPECT_EQ(read_solver_state(last).DebugString(), state);
  // Displays at 0, 3, 6, 9 and 12: the last three again, the first of them over losses from before
  // the snapshot.
  ASSERT_EQ(resumed_losses.values.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(resumed_losses.values[i], whole_losses.values[2 + i]);
}

INSTANTIATE_TEST_SUITE_P(
    All, Resume,
    testing::Combine(
        testing::Values(
            "type: \"SGD\" momentum: 0.9", "type: \"Nesterov\" momentum: 0.9", "type: \"AdaGrad\"",
            "type: \"RMSProp\"", "type: \"AdaDelta\" momentum: 0.9", "type: \"Adam\" momentum: 0.9",
            "type: \"AdamW\"", "type: \"Adam\" momentum: 0.9 amsgrad: true rectified: true",
            "type: \"AdamW\" adabelief: true lookahead: true lookahead_steps: 3",
            "momentum: 0.9 grad_centralization: true lookahead: true ema_decay: 0.8",
            "momentum: 0.9 momentum_policy: \"step\" initial_momentum_iter: 7", "type: \"LAMB\"",
            "type: \"Lion\" base_lr: 0.003", "type: \"Muon\" base_lr: 0.01",
            "momentum: 0.9 regularization_type: \"decoupled\" ema_decay: 0.8 test_ema: true",
            "momentum: 0.9 larc: true larc_policy: \"clip\" larc_eta: 0.1 larc_turbo: true",
            "momentum: 0.9 local_lr_auto: true clip_gradients_blob: 0.5 clip_gradients_layer: 0.6",
            "lr_policy: \"plateau\" gamma: 0.5 plateau_winsize: 1 plateau_winsize: 2 "
            "plateau_winsize: 2",
            "lr_policy: \"stepearly\" gamma: 0.5 stepearly: 1",
            "lr_policy: \"multistep\" gamma: 0.5 stepvalue: 2 stepvalue: 4 stepvalue: 8 "
            "warmup_iter: 3",
            "quantize { start: 3 }", "momentum: 0.9 quantize { start: 7 range: LEARNED bits: 4 }",
            "momentum: 0.9 ema_decay: 0.8 prune { kind: WEIGHTS end: 9 interval: 2 }",
            "momentum: 0.9 prune { kind: TWO_OF_FOUR start: 2 }",
            "type: \"Adam\" momentum: 0.9 prune { sparsity: 0.6 start: 1 interval: 3 end: 8 }",
            "lr_policy: \"sgdr\" period: 3", "lr_policy: \"onecycle\" momentum_policy: \"poly\""),
        testing::Values("BINARYPROTO", "HDF5"), testing::Values(Device::cpu, Device::gpu)));

TEST(Resume, AnAverageThatTheStateDoesNotHaveStartsAnew) {
  const Folder folder;
  Context context(Device::cpu);
  Lines log;
  context.set_log(log);
  Solver(context, training("", "BINARYPROTO", folder), {}).step(5);
  SolverOptions options;
  options.snapshot = folder.file("net_iter_5.solverstate");
  Solver solver(context, training("ema_decay: 0.9", "BINARYPROTO", folder), options);
  expect_part(join(log.warnings, "\n"), "holds no average of the weights");
  solver.step(1);
  Solver follower(context, training("lookahead: true", "BINARYPROTO", folder), options);
  expect_part(join(log.warnings, "\n"), "holds no slow weights");
  follower.step(1);
}

}  // namespace resume_test
}  // namespace crema::tests
