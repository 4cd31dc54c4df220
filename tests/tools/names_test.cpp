// Names with line breaks, escapes and bytes that are no UTF-8: a net with them trains, and nowhere
// do they forge a line, reach the terminal as a command or break JSON.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tools/program.h"

namespace crema::tests {
namespace names_test {

// As a prototxt writes them; and as all output shows them.
constexpr const char* kForged =
    "ip\\nI1123 17:00:00.000000 1 solver.cpp:1] Iteration 7777 (1 iter/s) loss = 0.5\\033[2J";
constexpr const char* kLoss = "loss\\377\\302\\233\\n";

std::string net() {
  return cat("name: \"", kForged,
             "\"\nlayer { name: \"data\" type: \"DummyData\" top: \"data\" top: \"label\" "
             "dummy_data_param { shape { dim: 8 dim: 20 } shape { dim: 8 } data_filler { type: "
             "\"gaussian\" } data_filler { type: \"constant\" value: 1 } } }\n"
             "layer { name: \"",
             kForged, "\" type: \"InnerProduct\" bottom: \"data\" top: \"", kForged,
             "\" inner_product_param { num_output: 4 weight_filler { type: \"xavier\" } } }\n"
             "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"",
             kForged, "\" bottom: \"label\" top: \"", kLoss, "\" }\n");
}

void expect_harmless(const std::string& output) {
  for (const char c : output)
    EXPECT_TRUE(c == '\n' || c == '\t' || (c >= ' ' && c < 0x7F)) << output;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    EXPECT_NE(line.find("I1123 17:00:00"), 0u) << line;
}

TEST(Names, ThatAreNoLinesTrainAndForgeNone) {
  const Folder folder;
  folder.write("net.prototxt", net());
  folder.write("solver.prototxt",
               "net: \"net.prototxt\"\nbase_lr: 0.01\nlr_policy: \"fixed\"\nsolver_mode: CPU\n"
               "random_seed: 1\nmax_iter: 4\ndisplay: 2\ntest_iter: 1\ntest_interval: 2\n"
               "snapshot_prefix: \"a\"\n");
  const Outcome trained = run(folder, "crema train -solver solver.prototxt");
  ASSERT_EQ(trained.code, 0) << trained.err;
  expect_harmless(trained.err);
  expect_part(trained.err, cat("] Creating Layer ", kForged, "\n"));
  expect_part(trained.err, cat("] Solving ", kForged, "\n"));
  expect_part(trained.err, cat("Train net output #0: ", kLoss, " = "));

  int values = 0;
  std::istringstream lines(folder.read("metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    google::protobuf::Struct object;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(line, &object).ok()) << line;
    const auto at = object.fields().find("values");
    if (at != object.fields().end())
      values += static_cast<int>(at->second.struct_value().fields().count(kLoss));
  }
  EXPECT_EQ(values, 5);  // train at 0 and 2, tests at 0, 2 and 4

  // The weights have these names unchanged.
  const Outcome resumed = run(folder,
                              "crema train -solver solver.prototxt -weights "
                              "a_iter_4.caffemodel");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  expect_harmless(resumed.err);
  expect_part(resumed.err, cat("] Loaded ", kForged, ": 4x20, 4\n"));

  const Outcome summary = run(folder, "crema summary -model net.prototxt -dump_plan");
  EXPECT_EQ(summary.code, 0) << summary.err;
  expect_harmless(summary.out + summary.err);
  expect_part(summary.out, cat("\n", kForged, "  InnerProduct"));
  expect_part(summary.out, cat("InnerProduct = ", kForged, "; "));

  const Outcome timed = run(folder, "crema time -model net.prototxt -iterations 1");
  EXPECT_EQ(timed.code, 0) << timed.err;
  expect_harmless(timed.out + timed.err);

  const Outcome extracted = run_shell(
      folder, "\"$TOOLS\"/extract_features a_iter_4.caffemodel net.prototxt \"$(printf '" +
                  std::string(kForged) + "')\" db 1 lmdb");
  EXPECT_EQ(extracted.code, 0) << extracted.err;
  expect_harmless(extracted.err);
  expect_part(extracted.err, cat("for feature blob ", kForged, "\n"));
}

TEST(Names, InErrors) {
  const Folder folder;
  folder.write("net.prototxt", cat("layer { name: \"", kForged, "\" type: \"ReLU\" bottom: \"",
                                   kLoss, "\" top: \"b\" }\n"));
  const Outcome outcome = run(folder, "crema summary -model net.prototxt");
  EXPECT_EQ(outcome.code, 1);
  ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
  expect_harmless(outcome.err);
  expect_part(outcome.errors()[0], kForged);
  expect_part(outcome.errors()[0], kLoss);
  const Outcome flag = run_shell(
      folder, "\"$TOOLS\"/crema summary -model \"$(printf 'no\\nI1123 17:00:00 x\\033[2J')\"");
  EXPECT_EQ(flag.code, 1);
  EXPECT_EQ(flag.errors().size(), 1u);
  expect_harmless(flag.err);
}

}  // namespace names_test
}  // namespace crema::tests
