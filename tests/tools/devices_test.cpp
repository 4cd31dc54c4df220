// The line of the log that says what computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "device/cudnn.h"
#include "device/device.h"
#include "tools/program.h"

namespace crema::tests {
namespace devices_test {

constexpr const char* kNet =
    "layer { name: \"data\" type: \"DummyData\" top: \"x\" dummy_data_param { shape { dim: 2 dim: "
    "3 } "
    "} }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"z\" inner_product_param { "
    "num_output: 1 } }\n"
    "layer { name: \"loss\" type: \"EuclideanLoss\" bottom: \"z\" bottom: \"z\" top: \"loss\" }\n";

// A net, a solver and weights.
void prepare(const Folder& folder) {
  folder.write("net.prototxt", kNet);
  folder.write("solver.prototxt",
               "net: \"net.prototxt\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 1 "
               "snapshot_prefix: \"net\"\n");
  const Outcome outcome = run(folder, "train -solver solver.prototxt");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
}

constexpr const char* kCommands[] = {
    "train -solver solver.prototxt", "time -model net.prototxt -iterations 1",
    "test -model net.prototxt -weights net_iter_1.caffemodel -iterations 1",
    "extract_features net_iter_1.caffemodel net.prototxt z z_db 1 lmdb"};

// A message of this form follows Caffe's own, before any about the net.
void expect_line(const Outcome& outcome, const std::string& caffes, const std::string& line) {
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> messages = outcome.messages();
  const auto own = std::find(messages.begin(), messages.end(), caffes);
  for (auto next = own; next != messages.end() && next - own < 3; ++next)
    if (std::regex_match(*next, std::regex(line))) return;
  ADD_FAILURE() << line << " does not follow " << caffes << " in: " << outcome.err;
}

TEST(Devices, OnACpuTheThreadsAndThePrecision) {
  const Folder folder;
  prepare(folder);
  for (const std::string command : kCommands) {
    SCOPED_TRACE(command);
    const std::string caffes = starts_with(command, "extract") ? "Using CPU" : "Use CPU.";
    expect_line(run_shell(folder, "export OMP_NUM_THREADS=1; $TOOLS/" + command), caffes,
                R"(Using CPU: 1 thread \(fp32\))");
    std::filesystem::remove_all(folder.file("z_db"));
  }
  expect_line(run_shell(folder, cat("export OMP_NUM_THREADS=3; $TOOLS/", kCommands[0])), "Use CPU.",
              R"(Using CPU: 3 threads \(fp32\))");
}

TEST(Devices, OnAGpuItsMemoryCudnnAndThePrecision) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU";
  const Folder folder;
  prepare(folder);
  struct Row {
    const char *flags, *memory, *precision;
  };
  const std::string cudnn = has_cudnn() ? R"(cuDNN \d+\.\d+, )" : "no cuDNN, ";
  for (const Row& row : {Row{"", "", "tf32"}, Row{"-gpu_memory 0.8", "memory 80 %, ", "tf32"},
                         Row{"-gpu_memory 0.125 -precision fp16", R"(memory 12\.5 %, )", "fp16"},
                         Row{"-gpu_memory 8GiB", R"(memory 8\.0 GiB, )", "tf32"}}) {
    SCOPED_TRACE(row.flags);
    expect_line(run(folder, cat(kCommands[0], " -gpu 0 ", row.flags)), "Using GPUs 0",
                cat(R"(Using GPU 0: \S.* \()", row.memory, cudnn, row.precision, R"(\))"));
  }
  const char* const caffes[] = {"Using GPUs 0", "Use GPU with device ID 0",
                                "Use GPU with device ID 0", "Using GPU 0"};
  for (int i = 0; i < 4; ++i) {
    SCOPED_TRACE(kCommands[i]);
    expect_line(run(folder, cat(kCommands[i], " -gpu 0")), caffes[i],
                cat(R"(Using GPU 0: \S.* \()", cudnn, R"(tf32\))"));
  }
}

// The words of extract_features replace a -gpu of the environment, not one of the command.
TEST(Devices, TheCommandsOwnWordsReplaceThoseOfTheEnvironment) {
  const Folder folder;
  prepare(folder);
  const std::string extract = cat("$TOOLS/", kCommands[3], " CPU");
  const Outcome outcome = run_shell(folder, "export CREMA_FLAGS='-gpu 0'; " + extract);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.err, "] Using CPU\n");
  const Outcome both = run_shell(folder, extract + " -gpu 0");
  ASSERT_EQ(both.errors().size(), 1u) << both.err;
  expect_part(both.errors()[0], "CPU and -gpu 0: give one of them");
}

}  // namespace devices_test
}  // namespace crema::tests
