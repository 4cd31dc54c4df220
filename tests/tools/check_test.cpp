// `crema check`: its output and exit code, and that training reports the same before it begins.
#include "tools/program.h"

namespace crema::tests {
namespace check_test {

constexpr const char* kNet =
    "layer { name: \"in\" type: \"DummyData\" top: \"x\" top: \"y\" dummy_data_param { shape { "
    "dim: 4 "
    "dim: 5 } shape { dim: 4 } } }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"z\" inner_product_param { "
    "num_output: 3 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"z\" bottom: \"y\" top: \"loss\" "
    "}\n";
constexpr const char* kSolver =
    "net: \"net.prototxt\"\nbase_lr: 0.01\nlr_policy: \"fixed\"\nmax_iter: "
    "3\nsnapshot_after_train: "
    "false\n";

TEST(CheckVerb, FindsNoProblems) {
  const Folder folder;
  folder.write("net.prototxt", kNet);
  folder.write("s.prototxt", kSolver);
  const Outcome outcome = run(folder, "crema check -solver s.prototxt");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.out, "The training net needs ");
  EXPECT_TRUE(ends_with(outcome.out, "on the CPU with a batch of 4\nno problems found\n"))
      << outcome.out;
}

TEST(CheckVerb, WarnsAsTheTrainingDoesBeforeItBegins) {
  const Folder folder;
  folder.write("net.prototxt", kNet);
  folder.write("s.prototxt", cat(kSolver, "gamma: 0.1\ntype: \"Adam\"\n"));
  const std::string said = "s.prototxt:6:1: ", what = "gamma has no effect under lr_policy";
  const Outcome check = run(folder, "crema check -solver s.prototxt");
  EXPECT_EQ(check.code, 0) << check.err;
  expect_part(check.out, cat(said, "warning: ", what));
  // Warnings of the training itself.
  expect_part(check.out, "s.prototxt:7:1: warning: type is \"Adam\", but momentum is missing");
  EXPECT_TRUE(ends_with(check.out, "\n2 warnings\n")) << check.out;

  const Outcome train = run(folder, "crema train -solver s.prototxt");
  EXPECT_EQ(train.code, 0) << train.err;
  const size_t warning = train.err.find(cat(said, what));
  ASSERT_NE(warning, std::string::npos) << train.err;
  EXPECT_LT(warning, train.err.find("Starting Optimization"));
}

TEST(CheckVerb, ReturnsOneWithErrors) {
  const Folder folder;
  folder.write(
      "net.prototxt",
      "layer { name: \"in\" type: \"Data\" top: \"x\" data_param { source: \"none\" } }\n" +
          std::string(kNet));
  folder.write("s.prototxt", cat(kSolver, "gamma: 0.1\n"));
  const Outcome missing = run(folder, "crema check -solver s.prototxt");
  EXPECT_EQ(missing.code, 1);
  expect_part(missing.out, "net.prototxt:1:55: error: layer \"in\": none: no such database");
  EXPECT_TRUE(ends_with(missing.out, "\n1 warning, 1 error\n")) << missing.out;

  // Findings that require making the net.
  std::string net = kNet;
  net.replace(net.find("xavier"), 6, "xaver");
  folder.write("net.prototxt", net);
  const Outcome filler = run(folder, "crema check -solver s.prototxt");
  EXPECT_EQ(filler.code, 1);
  expect_part(filler.out, "net.prototxt:2:1: error: layer \"ip\": unknown filler type \"xaver\"");
}

TEST(CheckVerb, SaysWhatANetLacks) {
  const std::string net = kNet, tests = "test_iter: 1\ntest_interval: 1\n";
  struct Row {
    std::string from, to, solver, said;
    int code;
  };
  const Row rows[] = {
      {"", "", tests, "no problems found", 0},
      // The tests find no data.
      {"top: \"y\" d", "top: \"y\" include { phase: TRAIN } d", tests,
       "error: layer \"ip\": bottom 0 is \"x\", but no layer above has such a top", 1},
      {"type: \"SoftmaxWithLoss\" bottom: \"z\"", "type: \"Accuracy\" bottom: \"z\"", "",
       "warning: no layer of the training net is a loss", 0},
      {" bottom: \"y\"", "", "", "but 1 is given; name what it reads, for example bottom: \"", 1},
      {"", "", "snapshot: 1\nsnapshot_prefix: \"none/net\"\n",
       "s.prototxt:7:1: warning: the folder none of snapshot_prefix does not exist: make it, or ",
       0},
      {" bottom: \"x\"", "", "", "but 0 are given; name what it reads, for example bottom: \"x\"",
       1},
  };
  for (const Row& row : rows) {
    const Folder folder;
    std::string changed = net;
    if (!row.from.empty()) changed.replace(net.find(row.from), row.from.size(), row.to);
    folder.write("net.prototxt", changed);
    folder.write("s.prototxt", kSolver + row.solver);
    const Outcome outcome = run(folder, "crema check -solver s.prototxt");
    EXPECT_EQ(outcome.code, row.code) << outcome.out << outcome.err;
    expect_part(outcome.out, row.said);
  }
}

// Which can be read once.
TEST(CheckVerb, ANetFromAPipeTrainsUnchecked) {
  const Folder folder;
  folder.write("net.prototxt", kNet);
  folder.write("s.prototxt", kSolver);
  const Outcome outcome = run_shell(
      folder, "cat net.prototxt | \"$TOOLS\"/crema train -solver s.prototxt -model /dev/stdin");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.err, "The files cannot be read back for a check: /dev/stdin: is empty");
}

}  // namespace check_test
}  // namespace crema::tests
