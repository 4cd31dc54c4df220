// Signals, streams that are closed, and readers that leave.
#include <gtest/gtest.h>

#include <csignal>
#include <regex>
#include <sstream>

#include "tools/program.h"

namespace crema::tests {
namespace signals_test {

// Convolutions and products of libraries; a step takes little.
constexpr const char* net =
    "name: \"small\"\n"
    "layer { name: \"data\" type: \"DummyData\" top: \"data\" top: \"label\" dummy_data_param { "
    "shape { dim: 16 dim: 1 dim: 28 dim: 28 } shape { dim: 16 }"
    " data_filler { type: \"gaussian\" } data_filler { type: \"constant\" value: 1 } } }\n"
    "layer { name: \"conv1\" type: \"Convolution\" bottom: \"data\" top: \"conv1\" "
    "convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"pool1\" type: \"Pooling\" bottom: \"conv1\" top: \"pool1\" pooling_param { "
    "kernel_size: 2 stride: 2 } }\n"
    "layer { name: \"conv2\" type: \"Convolution\" bottom: \"pool1\" top: \"conv2\" "
    "convolution_param { num_output: 50 kernel_size: 5 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"conv2\" top: \"ip\" "
    "inner_product_param { num_output: 100 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: "
    "\"loss\" }\n";

void prepare(const Folder& folder, const std::string& more) {
  folder.write("net.prototxt", net);
  folder.write("solver.prototxt",
               "net: \"net.prototxt\"\nbase_lr: 0.001\nlr_policy: \"fixed\"\nsolver_mode: CPU\n"
               "random_seed: 1\nsnapshot_prefix: \"run/small\"\n" +
                   more);
  folder.write("run/.here", "");
}

constexpr const char* endless = "max_iter: 100000000\ndisplay: 20\n";
constexpr const char* without_snapshot =
    "max_iter: 100000000\ndisplay: 20\nsnapshot_after_train: false\n";

// Starts a long training in the background, waits for its first lines, then runs `script` on $job.
Outcome signalled(const Folder& folder, const std::string& flags, const std::string& script) {
  return run_shell(
      folder, "\"$TOOLS\"/crema train -solver solver.prototxt " + flags +
                  " & job=$!; for i in $(seq 300); do grep -q 'Iteration 20 ' .stderr && break; "
                  "sleep 0.1; done; " +
                  script + "; wait $job");
}

TEST(Signals, InterruptStopsWithASnapshot) {
  const Folder folder;
  prepare(folder, endless);
  const Outcome outcome = signalled(folder, "", "kill -INT $job");
  EXPECT_EQ(outcome.code, 0);
  expect_part(outcome.err, "] Optimization stopped early.");
  expect_part(outcome.err, "] Snapshotting to binary proto file run/small_iter_");
  expect_part(outcome.err, "] Interrupted: ");
  // The command that it names continues from there.
  const std::string start = ". Continue with: ";
  const size_t at = outcome.err.find(start);
  ASSERT_NE(at, std::string::npos) << outcome.err;
  const size_t begin = at + start.size();
  const std::string command = outcome.err.substr(begin, outcome.err.find('\n', begin) - begin);
  expect_part(command, "/crema train -solver solver.prototxt -snapshot run/small_iter_");
  const int iteration = std::stoi(command.substr(command.rfind("iter_") + 5));
  const Outcome resumed = run_shell(folder, cat(command, " -set max_iter=", iteration));
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  expect_part(resumed.err, "] Optimization Done.");
}

// A user who presses Ctrl-C twice does not want to wait for the end of a step.
TEST(Signals, ASecondInterruptEndsAtOnce) {
  const Folder folder;
  prepare(folder, endless);
  folder.write(
      "net.prototxt",
      std::regex_replace(net, std::regex("dim: 16 dim: 1 dim: 28 dim: 28 \\} shape \\{ dim: 16"),
                         "dim: 64 dim: 1 dim: 100 dim: 100 } shape { dim: 64"));
  const Outcome outcome = run_shell(
      folder,
      "\"$TOOLS\"/crema train -solver solver.prototxt & job=$!; for i in $(seq 300); do grep -q "
      "'Solving small' .stderr && break; sleep 0.1; done; while kill -INT $job; do sleep 0.02; "
      "done; wait $job");
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.err;
}

TEST(Signals, HangUpTakesASnapshotAndGoesOn) {
  const Folder folder;
  prepare(folder, without_snapshot);
  const Outcome outcome = signalled(
      folder, "",
      "kill -HUP $job; for i in $(seq 300); do sed '1,/Snapshotting solver state/d' .stderr | "
      "grep -q '] Iteration ' && break; sleep 0.1; done; kill -INT $job");
  EXPECT_EQ(outcome.code, 0);
  expect_part(outcome.err, "] SIGHUP: a snapshot follows this iteration\n");
  const size_t snapshot = outcome.err.find("] Snapshotting solver state");
  ASSERT_NE(snapshot, std::string::npos) << outcome.err.substr(outcome.err.size() - 2000);
  EXPECT_NE(outcome.err.find("] Iteration ", snapshot), std::string::npos);
}

struct Effect {
  const char* name;
  const char* flags;
  const char* script;
  int snapshots;
  const char* says;  // as soon as it arrives
};

class EffectTest : public testing::TestWithParam<Effect> {};

TEST_P(EffectTest, OfASignal) {
  const Folder folder;
  prepare(folder, without_snapshot);
  const Outcome outcome = signalled(folder, GetParam().flags, GetParam().script);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.err, "] Optimization stopped early.");
  expect_part(outcome.err, GetParam().says);
  int snapshots = 0;
  for (size_t at = 0;
       (at = outcome.err.find("] Snapshotting solver state", at)) != std::string::npos; ++at)
    ++snapshots;
  EXPECT_EQ(snapshots, GetParam().snapshots) << outcome.err;
  expect_part(outcome.err, snapshots > 0 ? " with: " : ", without a snapshot: it cannot continue");
}

INSTANTIATE_TEST_SUITE_P(
    Signals, EffectTest,
    testing::Values(
        Effect{"TerminateSnapshotsWhateverTheSolverSays", "", "kill -TERM $job", 1,
               "] SIGTERM: stopping after this iteration, with a snapshot\n"},
        Effect{"TerminateMayStopOnly", "-sigterm_effect stop", "kill -TERM $job", 0,
               "] SIGTERM: stopping after this iteration\n"},
        Effect{"TerminateMaySnapshotAndGoOn", "-sigterm_effect snapshot",
               "kill -TERM $job; for i in $(seq 100); do ls run/*.solverstate >/dev/null 2>&1 && "
               "break; sleep 0.1; done; kill -INT $job",
               1, "] SIGTERM: a snapshot follows this iteration\n"},
        Effect{"TerminateMayDoNothing", "-sigterm_effect none",
               "kill -TERM $job; sleep 0.3; kill -INT $job", 0,
               "] SIGTERM: -sigterm_effect none: training continues\n"},
        Effect{"InterruptMaySnapshotInAnyCase", "-sigint_effect snapshot_stop", "kill -INT $job", 1,
               "] Interrupted: stopping after this iteration, with a snapshot. Ctrl-C again"}),
    [](const auto& info) { return std::string(info.param.name); });

// A handler that ran on a computing thread would write where the generated code of oneDNN keeps
// data: a few of these were enough to end a run.
TEST(Signals, ManyDoNoHarm) {
  const Folder folder;
  prepare(folder, without_snapshot);
  const Outcome outcome = signalled(
      folder, "-sighup_effect none",
      "for i in $(seq 400); do kill -HUP $job || break; sleep 0.003; done; kill -INT $job");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.err, "] Optimization stopped early.");
}

TEST(Streams, ThatAreClosedLeaveFilesAlone) {
  const Folder folder;
  prepare(folder, "max_iter: 5\ndisplay: 1\n");
  EXPECT_EQ(run_shell(folder, "\"$TOOLS\"/crema train -solver solver.prototxt <&- >&- 2>&-").code,
            0);
  std::istringstream lines(folder.read("run/metrics.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_EQ(line.front(), '{') << line;
  EXPECT_GE(count, 5);
  // Two images of 2 x 2 pixels.
  const std::string images("\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\2abcdefgh", 24);
  folder.write("images", images);
  folder.write("labels", std::string("\0\0\10\1\0\0\0\2\3\4", 10));
  EXPECT_EQ(run_shell(folder, "\"$TOOLS\"/convert_mnist_data images labels lmdb 2>&-").code, 0);
  EXPECT_EQ(run_shell(folder, "\"$TOOLS\"/compute_image_mean lmdb mean 2>&-").code, 0);
}

TEST(Streams, AReaderThatLeavesDoesNotEndATraining) {
  const Folder folder;
  prepare(folder, "max_iter: 50\ndisplay: 1\n");
  run_shell(folder, "\"$TOOLS\"/crema train -solver solver.prototxt 2>&1 | head -n 1");
  EXPECT_TRUE(folder.has("run/small_iter_50.solverstate"));
}

}  // namespace signals_test
}  // namespace crema::tests
