// `crema sweep`: which runs it starts, its table, and how a sweep continues.
#include <nlohmann/json.hpp>

#include "tools/program.h"

namespace crema::tests {
namespace sweep_test {

// The classes are always 2; the accuracy of a test shows what has been learned of that.
constexpr const char* kNet =
    "layer { name: \"in\" type: \"DummyData\" top: \"x\" top: \"y\" dummy_data_param { shape { "
    "dim: 8 dim: 5 } shape { dim: 8 } data_filler { type: \"constant\" value: 1 } data_filler { "
    "type: \"constant\" value: 2 } } }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"z\" inner_product_param { "
    "num_output: 3 weight_filler { type: \"constant\" value: 0 } } }\n"
    "layer { name: \"accuracy\" type: \"Accuracy\" bottom: \"z\" bottom: \"y\" top: \"accuracy\" "
    "include { phase: TEST } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"z\" bottom: \"y\" top: \"loss\" "
    "}\n";
constexpr const char* kSolver =
    "net: \"net.prototxt\"\nbase_lr: 0.01\nlr_policy: \"fixed\"\nmax_iter: 4\ntest_iter: 1\n"
    "test_interval: 2\ndisplay: 2\nsnapshot_prefix: \"s\"\n";

void write_files(const Folder& folder) {
  folder.write("net.prototxt", kNet);
  folder.write("s.prototxt", kSolver);
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Sweep, TrainsEachCombinationAndSortsThem) {
  const Folder folder;
  write_files(folder);
  const std::string command =
      "crema sweep -solver s.prototxt -sweep base_lr=0.001,0.1 -sweep "
      "'layer[ip].inner_product_param.num_output=2,4' -set momentum=0 -jobs 2 -run runs/a";
  const Outcome outcome = run(folder, command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(count(outcome.err, " begins\n"), 4u) << outcome.err;
  // The two of which class 2 was no class are rows, too, behind the others.
  const std::vector<std::string> rows = split(outcome.out, '\n');
  ASSERT_EQ(rows.size(), 8u) << outcome.out;
  EXPECT_EQ(rows[0].find("run  base_lr  ip num_output  accuracy  best  at"), 0u) << rows[0];
  EXPECT_EQ(count(outcome.out, "\nRun "), 2u) << outcome.out;
  expect_part(outcome.out,
              "Run 1-base_lr=0.001-num_output=2 failed: net.prototxt:3:1: layer \"accuracy\": "
              "label 2 ");
  const auto record = nlohmann::json::parse(folder.read("runs/a/sweep.json"));
  ASSERT_EQ(record["runs"].size(), 4u);
  EXPECT_EQ(record["runs"][3]["run"], "4-base_lr=0.1-num_output=4");
  EXPECT_EQ(record["runs"][3]["state"], "done");
  EXPECT_EQ(record["runs"][2]["state"], "failed");
  EXPECT_TRUE(folder.has("runs/a/4-base_lr=0.1-num_output=4/snapshots/s_iter_4.caffemodel"));
  EXPECT_TRUE(folder.has("runs/a/report.html"));
  const std::string csv = folder.read("runs/a/sweep.csv");
  expect_part(csv,
              "run,base_lr,layer[ip].inner_product_param.num_output,accuracy,accuracy best,"
              "accuracy best at,loss,");
  expect_part(csv, "\n4-base_lr=0.1-num_output=4,0.1,4,1,1,2,");

  // Once more with new values: only these.
  const Outcome more = run(folder,
                           "crema sweep -solver s.prototxt -sweep base_lr=0.1,0.2 -sweep "
                           "'layer[ip].inner_product_param.num_output=4' -set momentum=0 "
                           "-run runs/a");
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_EQ(count(more.err, " begins\n"), 1u) << more.err;
  expect_part(more.err, "Run 5-base_lr=0.2-num_output=4 begins");
  // Failed runs are tried again; if none succeeds, the exit code shows it.
  const Outcome again = run(folder,
                            "crema sweep -solver s.prototxt -sweep base_lr=0.1 -sweep "
                            "'layer[ip].inner_product_param.num_output=2' -set momentum=0 "
                            "-run runs/a");
  EXPECT_EQ(again.code, 1) << again.err;
  EXPECT_EQ(count(again.err, " begins\n"), 1u) << again.err;
}

TEST(Sweep, ChoosesAtRandomAndFewerAreAmongMore) {
  const Folder folder;
  write_files(folder);
  const std::string command =
      "crema sweep -solver s.prototxt -sweep base_lr=0.1,0.2,0.3 -sweep momentum=0,0.5 -set "
      "max_iter=0 -run runs -random ";
  EXPECT_EQ(run(folder, command + "2").code, 0);
  EXPECT_EQ(nlohmann::json::parse(folder.read("runs/sweep.json"))["runs"].size(), 2u);
  const Outcome more = run(folder, command + "4");
  EXPECT_EQ(count(more.err, " begins\n"), 2u) << more.err;
}

TEST(Sweep, GoesOnWhereItWasStopped) {
  const Folder folder;
  write_files(folder);
  const std::string command =
      "\"$TOOLS\"/crema sweep -solver s.prototxt -sweep base_lr=0.1,0.2 -set max_iter=";
  // An interrupt once the first of them trains.
  const Outcome stopped = run_shell(
      folder,
      command +
          "2000000000 -run runs & sweep=$!; "
          "while kill -0 $sweep && ! grep -qs Iteration runs/1-base_lr=0.1/train.log; do sleep "
          "0.05; done; kill -INT $sweep; wait $sweep");
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  expect_part(stopped.err, "Stopping; the current runs write their snapshots.");
  expect_part(stopped.out, "  stopped\n");
  expect_part(stopped.out, "  waiting\n");
  expect_part(stopped.out, "The same command continues with the missing ones.\n");
  EXPECT_FALSE(folder.has("runs/2-base_lr=0.2"));
  bool snapshot = false;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder.file("runs/1-base_lr=0.1/snapshots")))
    snapshot |= entry.path().extension() == ".solverstate";
  EXPECT_TRUE(snapshot);
}

// 20000 scores of 1000 samples are 80 MB; nine times that is more than there is.
TEST(Sweep, TrainsSideBySideOnlyWhatFitsIntoMemory) {
  if (!memory_can_be_limited)
    GTEST_SKIP() << "a sanitizer or an emulator maps more memory than is allowed";
  const Folder folder;
  write_files(folder);
  const Outcome outcome = run_shell(
      folder,
      limit_memory(650) +
          "\"$TOOLS\"/crema sweep -solver s.prototxt -set "
          "'layer[ip].inner_product_param.num_output=20000' -set "
          "'layer[in].dummy_data_param.shape=[{dim: [1000, 5]}, {dim: 1000}]' -sweep base_lr=1,2 "
          "-set max_iter=0 -set test_initialization=false -jobs 9 -run runs");
  expect_part(outcome.err, "-jobs 9: a run needs ");
  expect_part(outcome.err, " are available: ");
}

struct Refused {
  const char* flags;
  const char* message;
};

TEST(Sweep, RefusesBeforeAnythingIsTrained) {
  const Folder folder;
  write_files(folder);
  folder.write("other/sweep.json",
               R"({"solver": "s.prototxt", "flags": ["-set=momentum=0.5"],
                   "runs": [{"run": "1-base_lr=1", "set": ["base_lr=1"], "state": "done"}]})");
  folder.write("broken/sweep.json", "{");
  for (const Refused& row : {
           Refused{"-sweep base_lr=1 -run r", "a solver is needed"},
           Refused{"-solver s.prototxt -run r",
                   "-sweep is missing: the values to try, such as -sweep base_lr=0.1,0.01"},
           Refused{"-solver s.prototxt -sweep base_lr=1", "a folder for the runs is needed"},
           Refused{"-solver s.prototxt -run r -sweep base_lr", "-sweep 'base_lr' has no values"},
           Refused{"-solver s.prototxt -run r -sweep base_lr=1,", "has an empty value"},
           Refused{"-solver s.prototxt -run r -sweep base_lr=1,2,1", "has the value 1 twice"},
           Refused{"-solver s.prototxt -run r -sweep base_lr=1 -sweep base_lr=2",
                   "-sweep gives values of base_lr twice"},
           Refused{"-solver s.prototxt -run r -sweep base_lrr=1", "did you mean \"base_lr\"?"},
           Refused{"-solver s.prototxt -run r -sweep base_lr=1,fast",
                   "-set base_lr=fast: \"base_lr\" expects a number, found fast"},
           Refused{"-solver s.prototxt -run r -sweep base_lr=1 -jobs -1", "-jobs -1"},
           Refused{"-solver s.prototxt -run other -sweep base_lr=1",
                   "other/sweep.json: the runs there belong to -solver s.prototxt "
                   "-set=momentum=0.5; continue with these flags, or give another -run"},
           Refused{"-solver s.prototxt -run broken -sweep base_lr=1",
                   "broken/sweep.json: is not what `crema sweep` wrote"},
       }) {
    const Outcome outcome = run(folder, std::string("crema sweep ") + row.flags);
    EXPECT_EQ(outcome.code, 1) << row.flags;
    ASSERT_EQ(outcome.errors().size(), 1u) << row.flags << "\n" << outcome.err;
    expect_part(outcome.errors()[0], row.message);
    EXPECT_FALSE(folder.has("r"));
  }
}

}  // namespace sweep_test
}  // namespace crema::tests
