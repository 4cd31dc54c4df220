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
