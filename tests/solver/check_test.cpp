// `crema check`: for each finding a text that has it and one that has not.
#include "solver/check/check.h"

#include <limits>

#include "fixtures.h"
#include "net/weights/weights.h"

namespace crema::tests {
namespace check_test {

const std::string kInner =
    "inner_product_param { num_output: 3 weight_filler { type: \"xavier\" } }";
// A net that nothing can be said against.
const std::string kInput = "layer { name: \"in\" type: \"DummyData\" top: \"x\" top: \"y\" }\n";
const std::string kScores =
    cat("layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"z\" ", kInner, " }\n");
const std::string kLoss =
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"z\" bottom: \"y\" top: \"l\" }\n";
const std::string kSolver = "base_lr: 0.01 max_iter: 100\n";
const std::string kFixed = "lr_policy: \"fixed\"\n";

std::string said_of(const SolverFile& file, const CheckOptions& options = {}) {
  std::string text;
  for (const Finding& finding : check_training(file, options)) text += line_of(finding) + "\n";
  return text;
}

std::string said_of(const std::string& solver, const std::string& net) {
  return said_of(parse_solver_text(cat("net_param {\n", net, "}\n", solver), "solver.prototxt"));
}

struct Case {
  std::string said;                   // part of the finding
  std::string solver, net;            // that has it
  std::string good_solver, good_net;  // that has not
};

void PrintTo(const Case& row, std::ostream* out) { *out << row.said; }

class CheckTest : public testing::TestWithParam<Case> {};

TEST_P(CheckTest, IsSaidWhereItIsSoAndNowhereElse) {
  const Case& row = GetParam();
  expect_part(said_of(row.solver, row.net), row.said);
  EXPECT_EQ(said_of(row.good_solver, row.good_net), "");
}

Case of_solver(const std::string& said, const std::string& bad, const std::string& good) {
  const std::string net = kInput + kScores + kLoss;
  return {said, bad, net, good, net};
}

Case of_net(const std::string& said, const std::string& bad, const std::string& good) {
  return {said, kSolver + kFixed, bad, kSolver + kFixed, good};
}

const std::string kNorm = "layer { name: \"bn\" type: \"BatchNorm\" bottom: \"z\" top: \"z\" ";
const std::string kRelu = "layer { name: \"relu\" type: \"ReLU\" bottom: \"z\" top: \"z\" }\n";
const std::string kScale = "layer { name: \"s\" type: \"Scale\" bottom: \"z\" top: \"z\" }\n";
// A second layer after kRelu, so that no ReLU is right in front of the loss.
const std::string kScoresAndLoss = cat(
    "layer { name: \"ip2\" type: \"InnerProduct\" bottom: \"z\" top: \"s\" ", kInner,
    " }\nlayer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"s\" bottom: \"y\" top: \"l\" "
    "}\n");
const std::string kSumLoss =
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"z\" bottom: \"y\" top: \"l\"\n"
    "  loss_param { normalization: NONE } }\n";
const std::string kPlaces =
    "layer { name: \"c\" type: \"Convolution\" bottom: \"x\" top: \"z\" convolution_param { "
    "num_output: 3 kernel_size: 1 } }\n";
const std::string kByBatch =
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"z\" bottom: \"y\" top: \"l\" "
    "loss_param { normalize: false } }\n";

INSTANTIATE_TEST_SUITE_P(
    Solver, CheckTest,
    testing::Values(
        of_solver("solver.prototxt:8:1: warning: gamma has no effect under lr_policy \"fixed\": it "
                  "belongs to step, exp",
                  kSolver + kFixed + "gamma: 0.1", kSolver + "lr_policy: \"exp\" gamma: 0.99"),
        of_solver("stepsize has no effect under lr_policy \"multistep\"",
                  kSolver + "lr_policy: \"multistep\" gamma: 0.1 stepvalue: 50 stepsize: 5",
                  kSolver + "lr_policy: \"multistep\" gamma: 0.1 stepvalue: 50"),
        of_solver("error: lr_policy \"step\" needs gamma", kSolver + "lr_policy: \"step\"",
                  kSolver + "lr_policy: \"step\" gamma: 0.1 stepsize: 50"),
        of_solver("stepvalue[1] is 100, but max_iter is 100: this step is never reached",
                  kSolver + "lr_policy: \"multistep\" gamma: 0.1 stepvalue: [50, 100]",
                  kSolver + "lr_policy: \"multistep\" gamma: 0.1 stepvalue: [50, 99]"),
        of_solver("stepvalue 30 comes after 50",
                  kSolver + "lr_policy: \"multistep\" gamma: 0.1 stepvalue: [50, 30]",
                  kSolver + "lr_policy: \"multistep\" gamma: 0.1 stepvalue: [30, 50]"),
        of_solver("the rate never falls", kSolver + "lr_policy: \"step\" gamma: 0.1 stepsize: 100",
                  kSolver + "lr_policy: \"step\" gamma: 0.1 stepsize: 99"),
        of_solver("test_interval is 200, but max_iter is 100: the only test",
                  kSolver + kFixed + "test_iter: 1 test_interval: 200",
                  kSolver + kFixed + "test_iter: 1 test_interval: 100"),
        of_solver(
            "no weights are ever written",
            kSolver + kFixed + "snapshot_prefix: \"a\" snapshot: 101 snapshot_after_train: false",
            kSolver + kFixed + "snapshot_prefix: \"a\" snapshot: 100 snapshot_after_train: false"),
        of_solver("note: snapshot_prefix is missing", kSolver + kFixed + "snapshot: 10",
                  kSolver + kFixed + "snapshot: 10 snapshot_prefix: \"a\""),
        of_solver("max_iter is missing: the training ends before", "base_lr: 0.01 " + kFixed,
                  kSolver + kFixed),
        of_solver("base_lr is 0.1, which is far above what type \"Adam\" takes",
                  "base_lr: 0.1 max_iter: 100 type: \"Adam\"" + kFixed,
                  "base_lr: 0.001 max_iter: 100 type: \"Adam\"" + kFixed),
        of_solver("solver.prototxt:7:2: error: base_lr is -0.01, it must be at least 0; write",
                  "max_iter: 100\n base_lr: -0.01 " + kFixed,
                  "max_iter: 100\n base_lr: 0.01 " + kFixed),
        of_solver("warning: base_lr is 0: no weight changes", "base_lr: 0 max_iter: 100 " + kFixed,
                  kSolver + kFixed),
        of_solver("warning: gamma is 10: the rate grows with each step",
                  kSolver + "lr_policy: \"step\" gamma: 10 stepsize: 50",
                  kSolver + "lr_policy: \"step\" gamma: 0.1 stepsize: 50"),
        of_solver("warning: clip_gradients is 0: every gradient is cut to nothing",
                  kSolver + kFixed + "clip_gradients: 0", kSolver + kFixed + "clip_gradients: 1"),
        of_solver("test_interval is 10, but there is neither test_iter nor test_epoch",
                  kSolver + kFixed + "test_interval: 10",
                  kSolver + kFixed + "test_iter: 1 test_interval: 10"),
        of_solver("base_lr is 1e-08, which is far below what type \"SGD\" takes",
                  "base_lr: 1e-8 max_iter: 100 " + kFixed,
                  "base_lr: 1e-5 max_iter: 100 " + kFixed)));

INSTANTIATE_TEST_SUITE_P(
    Net, CheckTest,
    testing::Values(
        of_net("solver.prototxt:4:44: warning: layer \"r\" (ReLU): nothing reads \"r\"",
               kInput + kScores +
                   "layer { name: \"r\" type: \"ReLU\" bottom: \"z\" top: \"r\" }\n" + kLoss,
               kInput + kScores + kRelu + kScoresAndLoss),
        of_net("warning: layer \"bn\": use_global_stats is true in a training without weights",
               kInput + kScores + kNorm + "batch_norm_param { use_global_stats: true } }\n" +
                   kScale + kLoss,
               kInput + kScores + kNorm + "batch_norm_param { use_global_stats: false } }\n" +
                   kScale + kLoss),
        of_net("note: layer \"bn\": BatchNorm only normalises, and \"relu\" (ReLU) follows",
               kInput + kScores + kNorm + "}\n" + kRelu + kScoresAndLoss,
               kInput + kScores + kNorm + "}\n" + kScale + kRelu + kScoresAndLoss),
        of_net("with normalization: NONE the loss is a sum over the batch",
               kInput + kScores + kSumLoss, kInput + kScores + kLoss),
        of_net("with normalize: false the loss is a sum over all places",
               kInput + kPlaces + kByBatch, kInput + kScores + kByBatch)));

TEST(Check, SumsGoWithTinyRatesAndWithRulesThatDoNotSeeThem) {
  const std::string net = kInput + kScores + kSumLoss;
  EXPECT_EQ(said_of("base_lr: 1e-8 max_iter: 9 " + kFixed, net), "");
  EXPECT_EQ(said_of("base_lr: 0.001 max_iter: 9 type: \"Adam\" " + kFixed, net), "");
  std::string weighted = net;
  weighted.insert(weighted.rfind("loss_param"), "loss_weight: 0.01 ");
  EXPECT_EQ(said_of(kSolver + kFixed, weighted), "");
}

TEST(Check, StatisticsOfWeightsMayBeFixed) {
  const std::string net = kInput + kScores + kNorm +
                          "batch_norm_param { use_global_stats: true scale_bias: true } }\n" +
                          kRelu + kScoresAndLoss;
  CheckOptions options;
  options.resumes = true;
  EXPECT_EQ(said_of(parse_solver_text(cat("net_param {", net, "}", kSolver, kFixed), "s"), options),
            "");
}

struct DataCase {
  const char* said;  // "": nothing
  int (*label)(int64_t record);
  const char *data, *transform, *more;  // fields; of the solver
};

void PrintTo(const DataCase& row, std::ostream* out) { *out << row.said; }

class CheckDataTest : public testing::TestWithParam<DataCase> {};

int mixed(int64_t i) { return static_cast<int>(i % 3); }
int sorted(int64_t i) { return static_cast<int>(i / 20); }
int from_one(int64_t i) { return static_cast<int>(i % 3) + 1; }
int negative(int64_t i) { return static_cast<int>(i % 3) - 1; }
int only_zero(int64_t) { return 0; }

// 60 images of 2 x 3 x 3 random bytes.
TEST_P(CheckDataTest, LooksIntoTheDatabase) {
  const DataCase& row = GetParam();
  const Folder folder;
  const std::string database = image_database(folder, 60, {2, 3, 3}, row.label);
  const std::string text = said_of(
      cat(kSolver, kFixed, row.more),
      cat("layer { name: \"in\" type: \"Data\" top: \"x\" top: \"y\" data_param { source: \"",
          database, "\" backend: LMDB batch_size: 10 ", row.data, " } transform_param { ",
          row.transform, " } }\n", kScores, kLoss));
  if (*row.said == 0) {
    EXPECT_EQ(text, "");
  } else {
    expect_part(text, row.said);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, CheckDataTest,
    testing::Values(
        DataCase{"", mixed, "", "", ""},
        DataCase{"warning: layer \"in\": the records are sorted by their label, from 0 to 2",
                 sorted, "", "", ""},
        DataCase{"", sorted, "shuffle: true", "", ""},
        DataCase{"error: layer \"ip\": num_output is 3, for labels from 0 to 2, but \"in\" has the "
                 "label 3: set num_output: 4, or number",
                 from_one, "", "", ""},
        DataCase{"has the label -1: number the classes from 0, or set ignore_label: -1", negative,
                 "", "", ""},
        DataCase{"note: layer \"ip\": num_output is 3, but no label in \"in\" is above 0",
                 only_zero, "", "", ""},
        DataCase{"scale 255 does not fit the data: their standard deviation is 7", mixed, "",
                 "scale: 255", ""},
        DataCase{"scale 1e-06 does not fit", mixed, "", "scale: 0.000001", ""},
        DataCase{"", mixed, "", "scale: 0.00390625", ""},
        DataCase{"mean_value does not fit the data", mixed, "", "mean_value: 1000", ""},
        DataCase{"", mixed, "", "mean_value: 104 mean_value: 117", ""},
        DataCase{"the data are far from a mean of 0: they are 7", mixed, "",
                 "mean_value: -600 scale: 0.01", ""},
        DataCase{
            "test_iter is 5: with batches of 10 a test reads 50 records, but \"in\" has 60: the "
            "rest is left",
            mixed, "", "", "test_iter: 5 test_interval: 9"},
        DataCase{"some count more than once; test_iter: 6 reads all", mixed, "", "",
                 "test_iter: 7 test_interval: 9"},
        DataCase{"", mixed, "", "", "test_iter: 6 test_interval: 9"}));

TEST(Check, SourcesWithoutData) {
  const std::string net = cat(
      "layer { name: \"a\" type: \"Data\" top: \"x\" data_param { source: \"none\" } }\n"
      "layer { name: \"b\" type: \"ImageData\" top: \"u\" top: \"y\" image_data_param { source: "
      "\"none.txt\" } }\n",
      kScores, kLoss);
  const std::string text = said_of(kSolver + kFixed, net);
  expect_part(text, "solver.prototxt:2:54: error: layer \"a\": none: no such database");
  expect_part(text, "error: layer \"b\": none.txt: there is no such list of images");
}

TEST(Check, ListsOfImages) {
  const Folder folder;
  const auto said = [&](const std::string& fields) {
    return said_of(kSolver + kFixed,
                   cat("layer { name: \"in\" type: \"ImageData\" top: \"x\" top: \"y\" "
                       "image_data_param { source: \"",
                       folder.file("list.txt"), "\" ", fields, " } }\n", kScores, kLoss));
  };
  std::string list;
  for (int i = 0; i < 60; ++i) list += cat("images/", i, ".png ", i / 20, "\n");
  folder.write("list.txt", list);
  expect_part(said(""), "image_data_param { shuffle: true }");
  EXPECT_EQ(said("shuffle: true"), "");
}

TEST(Check, WeightsThatMatchNoLayer) {
  const Folder folder;
  Context context(Device::cpu);
  Solver solver(context, solver_file(""));
  save_caffemodel(solver.net(), folder.file("a.caffemodel"));
  CheckOptions options;
  options.weights = {folder.file("a.caffemodel")};
  const auto said = [&](const std::string& name) {
    std::string net = kNet;
    for (size_t at; (at = net.find("\"ip2\"")) != std::string::npos;) net.replace(at, 5, name);
    for (size_t at; name == "\"b\"" && (at = net.find("\"ip1\"")) != std::string::npos;)
      net.replace(at, 5, "\"c\"");
    return said_of(solver_file("max_iter: 10", net), options);
  };
  EXPECT_EQ(said_of(solver_file("max_iter: 10"), options), "");
  expect_part(said("\"a\""), "1 of 2 layers with weights are not in the net and are left out: ip2");
  expect_part(said("\"b\""), "no layer of these weights (ip1, ip2) is in the net");
}

TEST(Check, LargestBatch) {
  MemoryKinds kinds;
  kinds.blobs = 1000;
  kinds.parameters = kinds.diffs = kinds.history = 100;
  EXPECT_EQ(largest_batch_in(kinds, 10, 1300), 10);
  EXPECT_EQ(largest_batch_in(kinds, 10, 5399), 50);
  EXPECT_EQ(largest_batch_in(kinds, 10, 300), 0);
  EXPECT_EQ(largest_batch_in(kinds, 10, std::numeric_limits<size_t>::max()), 0);
}

TEST(Check, SortsAndCounts) {
  const auto line = [](const char* text) {
    return finding_of(Severity::warning, text, "s.prototxt");
  };
  Findings findings = {line("b:10:1: x"), line("b:9:1: x"), line("a:9:12: x"),
                       line("a:9:2: y"),  line("a:9:2: y"), line("no place")};
  findings[0].severity = Severity::error;
  tidy(&findings);
  std::string all;
  for (const Finding& finding : findings) all += line_of(finding) + "|";
  EXPECT_EQ(all,
            "a:9:2: warning: y|a:9:12: warning: x|b:9:1: warning: x|b:10:1: error: x|"
            "s.prototxt: warning: no place|");
  EXPECT_EQ(summary_of(findings), "4 warnings, 1 error");
  EXPECT_EQ(summary_of({}), "no problems found");
}

// As its records are counted by reading them, a small one is known and a large one is not.
TEST(Check, LooksIntoALevelDb) {
#ifndef CREMA_LEVELDB
  GTEST_SKIP() << "built without LevelDB";
#endif
  const Folder folder;
  const std::string database = folder.copy_golden("formats/leveldb_raw", "leveldb");
  const auto said = [&](int iterations) {
    return said_of(cat(kSolver, kFixed, "test_interval: 9 test_iter: ", iterations),
                   cat("layer { name: \"in\" type: \"Data\" top: \"x\" data_param { source: \"",
                       database, "\" backend: LEVELDB batch_size: 1 } }\n", kScores,
                       "layer { name: \"loss\" type: \"EuclideanLoss\" bottom: \"z\" bottom: "
                       "\"z\" }"));
  };
  expect_part(said(1000000), "some count more than once");
}

}  // namespace check_test
}  // namespace crema::tests
