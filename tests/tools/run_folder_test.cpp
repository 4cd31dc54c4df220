// Run folders: train -run.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "tools/program.h"

namespace crema::tests {
namespace run_folder_test {

// Data next to the net, a variable, a layer of a stage, dropout.
constexpr const char* net =
    "name: \"a net/of: mine\"\n"
    "$outputs ?= 4\n"
    "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" data_param { source: "
    "\"records\" backend: LMDB batch_size: 5 shuffle: true } transform_param { mirror: true } }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" inner_product_param "
    "{ num_output: $outputs weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"drop\" type: \"Dropout\" bottom: \"ip\" top: \"ip\" include { stage: \"s\" } "
    "}\n"
    "layer { name: \"last\" type: \"InnerProduct\" bottom: \"ip\" top: \"last\" "
    "inner_product_param { num_output: 21 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"last\" bottom: \"label\" top: "
    "\"loss\" }\n";

constexpr const char* solver =
    "net: \"nets/net.prototxt\"\nbase_lr: 0.0001\nlr_policy: \"step\"\ngamma: 0.5\nstepsize: 7\n"
    "momentum: 0.9\nsolver_mode: CPU\nmax_iter: 20\ndisplay: 3\nsnapshot: 8\ntest_iter: 2\n"
    "test_interval: 10\nsnapshot_prefix: \"own/small\"\n";

constexpr const char* start = "crema train -solver solver.prototxt ";

void prepare(const Folder& folder) {
  folder.write("nets/net.prototxt", net);
  folder.copy_golden("formats/lmdb_raw", "nets/records");
  folder.write("solver.prototxt", solver);
}

std::vector<std::string> visible_names(const Folder& folder) {
  std::vector<std::string> names;
  for (const std::string& name : folder.names())
    if (name[0] != '.') names.push_back(name);
  return names;
}

// run.json's member as it is written there.
std::string member(const std::string& record, const std::string& name) {
  std::smatch match;
  const std::regex pattern("\n  \"" + name + "\": ([^\n]*?),?\n");
  return std::regex_search(record, match, pattern) ? match[1].str() : "none";
}

// metrics.csv without the columns run and time.
std::string values_of(const std::string& csv) {
  std::istringstream lines(csv);
  std::string values;
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells = split(line, ',');
    cells[0] = cells[4] = "";
    // These are the machine's.
    if (cells[5] != "data_wait" && cells[5] != "iterations_per_second")
      values += join(cells, ",") + "\n";
  }
  return values;
}

// The hash of the weights of the last snapshot.
std::string last_weights(const std::string& metrics) {
  const std::string mark = "\"weights\":\"";
  const size_t at = metrics.rfind(mark);
  return at == std::string::npos ? "none" : metrics.substr(at + mark.size(), 16);
}

TEST(RunFolder, HoldsEverythingOfATraining) {
  const Folder folder;
  prepare(folder);
  const Outcome outcome =
      run(folder, std::string(start) + "-run all/mine/ -set outputs=6 -metrics confusion");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(visible_names(folder), (std::vector<std::string>{"all", "nets", "solver.prototxt"}));
  for (const char* file :
       {"run.json", "solver.prototxt", "train_val.prototxt", "train.log", "metrics.jsonl",
        "metrics.csv", "snapshots/small_iter_8.caffemodel", "snapshots/small_iter_16.solverstate",
        "snapshots/small_iter_20.solverstate", "snapshots/small_confusion.csv"})
    EXPECT_TRUE(folder.has(cat("all/mine/", file))) << file;
  // The log, without the lines from before there was a folder.
  const std::string log = folder.read("all/mine/train.log");
  EXPECT_EQ(outcome.err.substr(outcome.err.size() - std::min(log.size(), outcome.err.size())), log);
  expect_part(log, "] Solving a net/of: mine\n");
  const std::string record = folder.read("all/mine/run.json");
  expect_part(member(record, "command"), "crema train -solver solver.prototxt -run all/mine/ -set");
  EXPECT_EQ(member(record, "net"), "\"a net/of: mine\"");
  EXPECT_EQ(member(record, "device"), "\"CPU\"");
  EXPECT_NE(member(record, "seed"), "none");
  EXPECT_EQ(member(record, "resumptions"), "none");
  expect_part(record, "\"outputs=6\"");
  // The -set of a variable is part of the net, and its data are named by their location.
  const std::string text = folder.read("all/mine/train_val.prototxt");
  expect_part(text, "num_output: 6");
  expect_part(text, "source: \"nets/records\"");
  expect_part(folder.read("all/mine/solver.prototxt"), "net: \"all/mine/train_val.prototxt\"");
  expect_part(folder.read("all/mine/solver.prototxt"), "snapshot_prefix: \"own/small\"");
}

TEST(RunFolder, ItsFilesTrainTheSame) {
  for (const char* flags :
       {"", "-stage s", "-set outputs=5 -set type=Adam -set max_iter=12",
        "-set 'test_state={stage: \"s\"}' -batch 3", "-set random_seed=4 -model other.prototxt"}) {
    const Folder folder;
    prepare(folder);
    folder.write("other.prototxt",
                 std::regex_replace(net, std::regex("\"records\""), "\"nets/records\""));
    const Outcome first = run(folder, cat(start, flags, " -run first"));
    ASSERT_EQ(first.code, 0) << first.err;
    const Outcome again = run(folder, "crema train -solver first/solver.prototxt -run auto");
    ASSERT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(last_weights(folder.read("first/metrics.jsonl")),
              last_weights(folder.read("runs/a_net_of__mine-1/metrics.jsonl")))
        << flags;
  }
}

TEST(RunFolder, AutoNumbersThem) {
  const Folder folder;
  prepare(folder);
  const std::string once = "\"$TOOLS\"/" + std::string(start) + "-run auto";
  ASSERT_EQ(run_shell(folder, once + " & first=$!; " + once + " && wait $first").code, 0);
  folder.write("runs/a_net_of__mine-07/notes", "not a number of ours");
  ASSERT_EQ(run_shell(folder, once).code, 0);
  for (const char* number : {"1", "2", "3"})
    EXPECT_TRUE(
        folder.has(cat("runs/a_net_of__mine-", number, "/snapshots/small_iter_20.", "caffemodel")))
        << number;
  // A name of which nothing is left is that of the solver's file.
  folder.write("nets/net.prototxt", std::regex_replace(net, std::regex("name: \"a net.*\n"), ""));
  expect_part(run(folder, std::string(start) + "-run auto").err, "run is runs/solver-1\n");
}

TEST(RunFolder, AResumedRunGoesOnInTheSameFiles) {
  const Folder folder;
  prepare(folder);
  const std::string seed = "-set random_seed=3 ";
  ASSERT_EQ(run(folder, start + seed + "-run whole").code, 0);
  ASSERT_EQ(run(folder, start + seed + "-run runs/a_net_of__mine-7 -set max_iter=13").code, 0);
  // As a kill leaves them.
  std::filesystem::remove(folder.file("runs/a_net_of__mine-7/snapshots/small_iter_13.solverstate"));
  std::ofstream(folder.file("runs/a_net_of__mine-7/metrics.jsonl"), std::ios::app) << "{\"iter";
  std::ofstream(folder.file("runs/a_net_of__mine-7/metrics.csv"), std::ios::app) << "1,2,3";
  const Outcome resumed = run(folder, start + seed + "-run auto -snapshot auto");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const std::string half = "runs/a_net_of__mine-7/";
  expect_part(resumed.err, "Resuming from " + half + "snapshots/small_iter_8.solverstate");
  EXPECT_EQ(last_weights(folder.read("whole/metrics.jsonl")),
            last_weights(folder.read(half + "metrics.jsonl")));
  // The test of iteration 0 counts once, and the rows of iterations 9 to 13 are the second ones.
  EXPECT_EQ(values_of(folder.read(half + "metrics.csv")),
            values_of(folder.read("whole/metrics.csv")));
  const std::string log = folder.read(half + "train.log"), record = folder.read(half + "run.json");
  EXPECT_LT(log.find("Iteration 12 "), log.rfind("Iteration 12 "));
  expect_part(member(record, "command"), "max_iter=13");
  expect_part(record, "\"iteration\": 8");
  // Without a snapshot it starts over, and still is the same run.
  std::filesystem::remove_all(folder.file(half + "snapshots"));
  ASSERT_EQ(run(folder, start + seed + "-run auto -snapshot auto").code, 0);
  EXPECT_EQ(values_of(folder.read(half + "metrics.csv")),
            values_of(folder.read("whole/metrics.csv")));
  // The folder alone says what to train.
  const Outcome alone = run(folder, "crema train -run whole -snapshot auto -set max_iter=22");
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_TRUE(folder.has("whole/snapshots/small_iter_22.caffemodel"));
}

struct Mistake {
  const char* flags;
  const char* message;
};

TEST(RunFolder, MistakesLeaveNothing) {
  const Folder folder;
  prepare(folder);
  ASSERT_EQ(run(folder, std::string(start) + "-run done -set max_iter=1").code, 0);
  folder.write("other/notes.txt", "mine");
  folder.write("damaged/run.json", "{\"started\": 5}");
  std::filesystem::create_directory(folder.file("empty"));
  const std::string log = folder.read("done/train.log"), record = folder.read("done/run.json");
  for (const Mistake& row : {
           Mistake{"-run done", "-run done: this folder already has a run, started 2"},
           Mistake{"-run damaged",
                   "damaged/run.json: \"started\" is a number; expected a JSON string"},
           Mistake{"-run other", "-run other: this folder has other files and no run; name a"},
           Mistake{"-run solver.prototxt", "solver.prototxt: is a file; -run needs a folder"},
           Mistake{"-run new/deep -set base_lrr=1", "-set base_lrr=1: solver and net have no"},
           Mistake{"-run empty -set lr_policy=none", "solver.prototxt:3:1: "},
           Mistake{"-run auto -set lr_policy=none", "solver.prototxt:3:1: "},
           Mistake{"-run new -snapshot missing.solverstate", "missing.solverstate: cannot open"},
           Mistake{"-run new -model <(cat nets/net.prototxt)", "-run keeps the text of the net"},
           Mistake{"-run new -resume_check 5", "-resume_check trains from the start"},
       }) {
    const Outcome outcome = run_shell(
        folder, cat("bash -c '\"$TOOLS\"/crema train -solver solver.prototxt ", row.flags, "'"));
    EXPECT_EQ(outcome.code, 1) << row.flags;
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], row.message);
  }
  EXPECT_EQ(visible_names(folder), (std::vector<std::string>{"damaged", "done", "empty", "nets",
                                                             "other", "solver.prototxt"}));
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("empty")));
  EXPECT_EQ(folder.read("done/train.log"), log);
  EXPECT_EQ(folder.read("done/run.json"), record);
}

TEST(RunFolder, TheMessageThatEndsItIsInItsLog) {
  const Folder folder;
  prepare(folder);
  const Outcome outcome = run(folder, std::string(start) +
                                          "-run r -set lr_policy=multistep -set stepvalue=10 "
                                          "-set gamma=1e30");
  EXPECT_EQ(outcome.code, 1);
  ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
  expect_part(folder.read("r/train.log"), "] " + outcome.errors()[0] + "\n");
  expect_part(outcome.errors()[0], "-run r ");  // the command to continue with
}

TEST(RunFolder, ALogThatCannotBeWrittenEndsNoTraining) {
  const Folder folder;
  prepare(folder);
  ASSERT_EQ(run(folder, std::string(start) + "-run r -set max_iter=3").code, 0);
  const Outcome outcome = run_shell(
      folder, cat("ln -sf /dev/full r/train.log; \"$TOOLS\"/", start, "-run r -snapshot auto"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string warning =
      "] Cannot write r/train.log: No space left on device; the training continues";
  expect_part(outcome.err, warning);
  EXPECT_EQ(outcome.err.find(warning), outcome.err.rfind(warning));
  EXPECT_TRUE(folder.has("r/snapshots/small_iter_20.solverstate"));
}

TEST(RunFolder, AFileEndsATrainingAndASecondOneKeepsOut) {
  const Folder folder;
  prepare(folder);
  folder.write("r/.gone", "");
  std::filesystem::remove(folder.file("r/.gone"));
  const Outcome outcome = run_shell(
      folder,
      cat("\"$TOOLS\"/", start,
          "-run r -set max_iter=100000000 -set display=100000 -set snapshot=0 -set "
          "test_interval=1000000 & job=$!; for i in $(seq 300); do grep -q 'Solving' .stderr && "
          "break; sleep 0.1; done; \"$TOOLS\"/",
          start, "-run r -snapshot auto 2> second; touch r/stop; wait $job"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(folder.read("second"), "-run r: another run is writing to this folder, started");
  expect_part(outcome.err, "] r/stop requests a stop: the run ends with a snapshot.\n");
  expect_part(outcome.err,
              "] Snapshotting solver state to binary proto file r/snapshots/small_iter");
  EXPECT_FALSE(folder.has("r/stop"));
  // One from before the start is none of its business.
  folder.write("r/stop", "");
  const Outcome resumed = run(folder, std::string(start) +
                                          "-run r -snapshot auto -set max_iter=100000000 -set "
                                          "max_minutes=0.001 -set display=0");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  expect_part(resumed.err, "] Removed r/stop, which was there before this start.\n");
}

}  // namespace run_folder_test
}  // namespace crema::tests
