// Training from the outside: signals, devices, metrics, the status line, -assume.
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <regex>
#include <sstream>

#include "device/device.h"
#include "tools/program.h"

namespace crema::tests {
namespace train_test {

constexpr const char* net =
    "name: \"noise\"\n"
    "layer { name: \"data\" type: \"DummyData\" top: \"data\" top: \"label\" dummy_data_param { "
    "shape { dim: 8 dim: 20 } shape { dim: 8 }"
    " data_filler { type: \"gaussian\" } data_filler { type: \"constant\" value: 1 } } }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" inner_product_param "
    "{ num_output: 4 weight_filler {"
    " type: \"xavier\" } } }\n"
    "layer { name: \"accuracy\" type: \"Accuracy\" bottom: \"ip\" bottom: \"label\" top: "
    "\"accuracy\" include { phase: TEST } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: "
    "\"loss\" }\n";

std::string solver(const std::string& more) {
  return "net: \"net.prototxt\"\nbase_lr: 0.01\nlr_policy: \"fixed\"\nsolver_mode: "
         "CPU\nrandom_seed: 1\n"
         "snapshot_prefix: \"run/noise\"\n" +
         more;
}

void prepare(const Folder& folder, const std::string& more) {
  folder.write("net.prototxt", net);
  folder.write("solver.prototxt", solver(more));
  folder.write("run/.here", "");
}

TEST(Train, WritesMetricsBesideTheSnapshots) {
  const Folder folder;
  prepare(folder, "max_iter: 20\ndisplay: 5\ntest_iter: 2\ntest_interval: 10\nsnapshot: 10\n");
  const Outcome outcome = run(folder, "crema train -solver solver.prototxt");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::istringstream lines(folder.read("run/metrics.jsonl"));
  std::string kinds;
  int snapshots = 0;  // each is told of when its files are there, whatever comes between
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line.front(), '{');
    EXPECT_EQ(line.back(), '}');
    static const std::regex kind("\"kind\":\"([a-z]+)\"");
    std::smatch match;
    ASSERT_TRUE(std::regex_search(line, match, kind)) << line;
    match[1] == "snapshot" ? void(++snapshots) : void(kinds += match[1].str() + " ");
  }
  EXPECT_EQ(kinds,
            "start test confusion train train test confusion train train train test confusion end ")
      << folder.read("run/metrics.jsonl");
  EXPECT_EQ(snapshots, 2);
  expect_part(folder.read("run/metrics.jsonl"), "{\"iteration\":5,\"kind\":\"train\",\"run\":\"");
  expect_part(folder.read("run/metrics.jsonl"), "\"lr\":0.01");
  expect_part(folder.read("run/metrics.jsonl"), "\"accuracy\":");
}

// Images to decode, and hardly anything to compute.
constexpr const char* slow_data =
    "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" data_param { source: "
    "\"lmdb_encoded\" backend: LMDB batch_size: 64 threads: 1 } transform_param { crop_size: 1 } "
    "}\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" inner_product_param "
    "{ num_output: 15 } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: "
    "\"loss\" }\n";

TEST(Train, SaysHowLongItWaitedForData) {
#ifndef CREMA_OPENCV
  GTEST_SKIP() << "built without OpenCV";
#endif
  const Folder folder;
  prepare(folder, "max_iter: 100\ndisplay: 10\nsnapshot_after_train: false\n");
  folder.copy_golden("formats/lmdb_encoded", "lmdb_encoded");
  static const std::regex share("\"data_wait\":([0-9.e-]+)");
  for (const char* text : {net, slow_data}) {
    folder.write("net.prototxt", text);
    folder.write("run/metrics.jsonl", "");
    const Outcome outcome = run(folder, "crema train -solver solver.prototxt");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("data_wait"), std::string::npos) << "the log is Caffe's";
    const std::string metrics = folder.read("run/metrics.jsonl");
    const std::string second = metrics.substr(metrics.find("\"iteration\":50"));
    std::smatch match;
    ASSERT_TRUE(std::regex_search(second, match, share)) << metrics;
    const double waited = std::stod(match[1]);
    EXPECT_EQ(waited > 0, text == slow_data) << waited;
    EXPECT_LE(waited, 1);
    static const std::regex line("\\]     Waiting for data: [0-9]+ % of the time\n");
    EXPECT_EQ(std::regex_search(outcome.err, line), text == slow_data) << outcome.err;
    static const std::regex hint(
        "The training waits [0-9]+ % of its time for layer \"data\": [a-z]+");
    const auto hints = std::distance(
        std::sregex_iterator(outcome.err.begin(), outcome.err.end(), hint), std::sregex_iterator());
    EXPECT_EQ(hints, text == slow_data ? 1 : 0) << outcome.err;
  }
}

TEST(Train, ModelFlagReplacesTheSolversNet) {
  const Folder folder;
  prepare(folder, "max_iter: 1\n");
  folder.write("other.prototxt",
               std::regex_replace(std::string(net), std::regex("\"noise\""), "\"other\""));
  expect_part(run(folder, "crema train -solver solver.prototxt -model other.prototxt").err,
              "] Solving other\n");
}

TEST(Train, AssumeTrainsWithoutTheDatabase) {
  const Folder folder;
  prepare(folder, "max_iter: 3\ndisplay: 1\ntest_iter: 1\ntest_interval: 2\n");
  folder.write(
      "net.prototxt",
      std::regex_replace(std::string(net), std::regex("type: \"DummyData\"(.*)dummy_data_param.*"),
                         "type: \"Data\"$1data_param { source: \"nowhere\" batch_size: 8 } }"));
  EXPECT_EQ(run(folder, "crema train -solver solver.prototxt").code, 1);
  const Outcome outcome =
      run(folder, "crema train -solver solver.prototxt -assume data=6x20,label=6");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.err, "Top shape: 6 20 (120)");
  expect_part(outcome.err, "] Optimization Done.");
}

TEST(Train, WithoutAGpuAFileThatWantsOneTrainsOnTheCpuWithAWarning) {
  const Folder folder;
  if (run(folder, "device_query").err.find("No GPU") == std::string::npos)
    GTEST_SKIP() << "this machine has a GPU";
  prepare(folder, "max_iter: 1\n");
  folder.write("solver.prototxt",
               std::regex_replace(solver("max_iter: 1\n"), std::regex("mode: CPU"), "mode: GPU"));
  const Outcome outcome = run(folder, "crema train -solver solver.prototxt");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.err, "The solver asks for a GPU, but ");
  EXPECT_EQ(outcome.err[0], 'W');
  expect_part(outcome.err, "] Use CPU.");
  const Outcome refused = run(folder, "crema train -solver solver.prototxt -gpu 0");
  EXPECT_EQ(refused.code, 1);
  ASSERT_EQ(refused.errors().size(), 1u);
  expect_part(refused.errors()[0], "-gpu 0: ");
  expect_part(refused.errors()[0], "; leave out -gpu: then the CPU computes");
  EXPECT_EQ(outcome.err.find("leave out -gpu"), std::string::npos) << outcome.err;
}

// Each of them gets a rank; a machine that has fewer trains on those.
TEST(Train, DeviceIdMayNameSeveralGpus) {
  const Folder folder;
  prepare(folder, "");
  folder.write("solver.prototxt", std::regex_replace(solver("max_iter: 1\ndevice_id: [0, 70]\n"),
                                                     std::regex("mode: CPU"), "mode: GPU"));
  const Outcome outcome = run(folder, "crema train -solver solver.prototxt");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  if (gpu_count() > 0)
    expect_part(outcome.err,
                "] solver.prototxt:8:1: device_id names GPU 70, but this machine has ");
}

TEST(Train, AssumeAsksForSourcesOfThePhasesInUse) {
  const Folder folder;
  prepare(folder, "max_iter: 2\n");
  folder.write("net.prototxt",
               std::string(net) +
                   "layer { name: \"own\" type: \"Python\" top: \"own\" include { phase: TEST } "
                   "python_param { module: \"m\" layer: \"L\" } }\n");
  const Outcome outcome = run(folder, "crema train -solver solver.prototxt -assume default");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Outcome tested =
      run_shell(folder,
                "echo 'test_iter: 1 test_interval: 1' >> solver.prototxt; "
                "\"$TOOLS\"/crema train -solver solver.prototxt -assume default");
  ASSERT_EQ(tested.errors().size(), 1u) << tested.err;
  expect_part(tested.errors()[0],
              "net.prototxt:6:1: -assume default cannot know the shape of top \"own\" of layer "
              "\"own\" (Python, which states no batch_size); name it, for example -assume "
              "default,own=SHAPE");
  // Positions stay those of the net's file.
  const Outcome wrong =
      run(folder, "crema train -solver solver.prototxt -assume own=1,data=8x20,label=9");
  ASSERT_EQ(wrong.errors().size(), 1u) << wrong.err;
  expect_part(wrong.errors()[0], "net.prototxt:5:1: layer \"loss\"");
}

// Runs a command on a new terminal and returns all its output there.
std::string on_a_terminal(const Folder& folder, const std::string& command) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    const std::string line = own_environment(folder) + "cd '" + folder.path() + "' && '" +
                             CREMA_TOOLS + "/crema' " + command + " -log_dir .";
    execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = read(terminal, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(count));
  waitpid(child, nullptr, 0);
  close(terminal);
  return text;
}

TEST(Train, StatusLineStandsBelowTheLogOfATerminalAndNeverTearsIt) {
  const Folder folder;
  prepare(folder, "max_iter: 60000\ndisplay: 2000\nsnapshot_after_train: false\n");
  const std::string text = on_a_terminal(folder, "train -solver solver.prototxt");
  expect_part(text, "\r\033[36miteration ");
  expect_part(text, " it/s");
  expect_part(text, " images/s");
  expect_part(text, " left");
  // The visible part of a line is what follows its last erasure.
  static const std::regex whole(
      R"([IWE]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [a-z_]+\.\w+:\d+\] Iteration \d+ \(.*\), loss = \S+)");
  std::istringstream lines(text);
  int seen = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" iter/s") == std::string::npos) continue;
    while (!line.empty() && line.back() == '\r') line.pop_back();
    const size_t erased = line.rfind("\033[K");
    if (erased != std::string::npos) line = line.substr(erased + 3);
    EXPECT_TRUE(std::regex_match(line, whole)) << line;
    ++seen;
  }
  EXPECT_EQ(seen, 30);
}

TEST(Train, StatusLineShowsTheShareOfWaitingForData) {
#ifndef CREMA_OPENCV
  GTEST_SKIP() << "built without OpenCV";
#endif
  const Folder folder;
  prepare(folder, "max_iter: 1000\nsnapshot_after_train: false\n");
  folder.write("net.prototxt", slow_data);
  folder.copy_golden("formats/lmdb_encoded", "lmdb_encoded");
  const std::string text = on_a_terminal(folder, "train -solver solver.prototxt");
  EXPECT_TRUE(std::regex_search(text, std::regex(" left  waits for data [0-9]+ %"))) << text;
}

}  // namespace train_test
}  // namespace crema::tests
