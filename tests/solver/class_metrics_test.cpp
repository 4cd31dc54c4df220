// The metrics of a classifier whose net has only a loss. The values were computed by hand, and with
// scikit-learn's definitions: f1_score(average="macro"), roc_auc_score(multi_class="ovr"),
// average_precision_score(average="macro").
#include "solver/test/class_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fixtures.h"

namespace crema::tests {
namespace class_metrics_test {

struct Case {
  const char* name;
  std::vector<int64_t> shape;  // of the scores
  std::vector<float> scores, labels;
  const char* asked;
  std::vector<std::pair<std::string, float>> expected;
  const char* more = "";  // in the layer
};

const float kNone = std::numeric_limits<float>::quiet_NaN();

std::unique_ptr<Net> net_of(Context& context, const Case& row) {
  std::string scores, labels;
  for (size_t i = 0; i < row.shape.size(); ++i) {
    scores += cat(" dim: ", row.shape[i]);
    if (i != 1) labels += cat(" dim: ", row.shape[i]);
  }
  const NetFile file = parse_net_text(
      cat("layer { name: \"in\" type: \"Input\" top: \"s\" top: \"y\" input_param { shape {",
          scores, " } shape {", labels,
          " } } }\nlayer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: ",
          "\"s\" bottom: \"y\" top: \"loss\" ", row.more, " }"),
      "net.prototxt");
  NetOptions options;
  options.state.set_phase(TEST);
  options.keep_blobs = true;
  return std::make_unique<Net>(context, file.net, options);
}

class ClassMetricsOf : public testing::TestWithParam<Case> {};

TEST_P(ClassMetricsOf, AreThoseOfTheirDefinitions) {
  const Case& row = GetParam();
  Context context(Device::cpu);
  const auto net = net_of(context, row);
  ClassMetrics metrics(*net, parse_class_metrics(row.asked));
  net->set_input("s", row.scores.data());
  net->set_input("y", row.labels.data());
  for (int test = 0; test < 2; ++test) {  // a new test forgets the old one
    metrics.clear();
    net->forward(0);
    metrics.add();
    metrics.finish();
    const std::vector<OutputValue> values = metrics.outputs();
    ASSERT_EQ(values.size(), row.expected.size());
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i].name, row.expected[i].first);
      EXPECT_EQ(values[i].name, metrics.names()[i]);
      if (std::isnan(row.expected[i].second)) {
        EXPECT_TRUE(std::isnan(values[i].value)) << values[i].name;
      } else {
        EXPECT_FLOAT_EQ(values[i].value, row.expected[i].second) << values[i].name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, ClassMetricsOf,
    testing::Values(
        // Differences of the scores: -2, 0.5, 1, 1, 3.
        Case{"two",
             {5, 2},
             {2, 0, 0, 0.5, 0, 1, 1, 2, 0, 3},
             {0, 0, 1, 0, 1},
             "auc,map,f1,per_class",
             {{"auc", 5.5f / 6},
              {"map", 5 / 6.f},
              {"macro_f1", (0.5f + 2 / 3.f) / 2},
              {"accuracy_of_class_0", 1 / 3.f},
              {"accuracy_of_class_1", 1}}},
        // The net says 0 1 1 2; class 3 occurs nowhere.
        Case{"four",
             {4, 4},
             {5, 1, 1, 0, 0, 5, 1, 1, 2, 5, 1, 0, 0, 3, 5, 1},
             {0, 1, 0, 2},
             "top1,top2,f1,iou,per_class",
             {{"top1", 0.75f},
              {"top2", 1},
              {"macro_f1", (2 / 3.f + 2 / 3.f + 1) / 3},
              {"mean_iou", (0.5f + 0.5f + 1) / 3},
              {"accuracy_of_class_0", 0.5f},
              {"accuracy_of_class_1", 1},
              {"accuracy_of_class_2", 1},
              {"accuracy_of_class_3", kNone}}},
        // One against the rest: all pairs of class 0, 3 of 4 of class 1, 2 of 3 of class 2.
        Case{"rest",
             {4, 3},
             {3, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 2},
             {0, 1, 2, 1},
             "auc,map",
             {{"auc", (1 + 0.75f + 2 / 3.f) / 3}, {"map", (1 + 5 / 6.f + 0.5f) / 3}}},
        // Maps of 1 x 4: it says 0 1 1 0, and one place is ignored.
        Case{"maps",
             {1, 2, 1, 4},
             {1, 0, 0, 1, 0, 1, 1, 0},
             {0, 1, 0, 9},
             "iou,top1",
             {{"mean_iou", 0.5f}, {"top1", 2 / 3.f}},
             "loss_param { ignore_label: 9 }"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ClassMetrics, ShowAConfusionAsATableOrAFile) {
  Context context(Device::cpu);
  const Folder folder;
  for (const int64_t classes : {3, 21}) {
    std::vector<float> scores(static_cast<size_t>(2 * classes), 0);
    scores[1] = scores[classes + 2] = 1;
    const Case row{"", {2, classes}, scores, {1, 0}, "", {}};
    const auto net = net_of(context, row);
    ClassMetrics metrics(*net, {"confusion"});
    net->set_input("s", row.scores.data());
    net->set_input("y", row.labels.data());
    net->forward(0);
    metrics.add();
    metrics.finish();
    EXPECT_TRUE(metrics.outputs().empty());
    const auto confusion = metrics.confusion(folder.file("c.csv"));
    ASSERT_TRUE(confusion);
    EXPECT_EQ(confusion->classes, classes);
    const std::string text = join(lines_of(*confusion), "\n");
    if (classes == 3) {
      expect_part(text, "says):\n   0 1 2\n 0 0 0 1\n 1 0 1 0\n 2 0 0 0");
      EXPECT_FALSE(folder.has("c.csv"));
    } else {
      expect_part(text, folder.file("c.csv"));
      EXPECT_TRUE(starts_with(folder.read("c.csv"), "0,0,1,0,0,"));
    }
  }
}

// Rows: labels, columns: answers.
struct ConfusionRow {
  const char* name;
  std::vector<int64_t> shape;  // of the scores
  std::vector<float> scores, labels;
  std::vector<int64_t> counts;
  const char* more = "";  // in the layer
};

const ConfusionRow kConfusions[] = {
    {"images", {3, 2}, {0, 1, 1, 0, 0, 2}, {1, 1, 0}, {0, 1, 1, 1}},
    {"of equal scores the first", {2, 3}, {1, 1, 1, 0, 2, 2}, {2, 2}, {0, 0, 0, 0, 0, 0, 1, 1, 0}},
    {"an ignored label",
     {3, 2},
     {0, 1, 1, 0, 0, 2},
     {1, -1, 0},
     {0, 1, 0, 1},
     "loss_param { ignore_label: -1 }"},
    {"maps", {2, 2, 1, 2}, {1, 0, 0, 1, 5, 5, 4, 6}, {0, 0, 1, 1}, {1, 1, 1, 1}},
    {"maps with an ignored label",
     {1, 2, 1, 3},
     {1, 0, 0, 0, 1, 1},
     {0, 255, 1},
     {1, 0, 0, 1},
     "loss_param { ignore_label: 255 }"},
    // The layer counts from the end.
    {"an axis from the end",
     {1, 2, 1, 2},
     {1, 0, 0, 1},
     {0, 1},
     {1, 0, 0, 1},
     "softmax_param { axis: -3 }"},
};

TEST(ClassMetrics, CountTheConfusionWithAndWithoutBeingAsked) {
  Context context(Device::cpu);
  for (const ConfusionRow& row : kConfusions) {
    SCOPED_TRACE(row.name);
    const auto net = net_of(context, {"", row.shape, row.scores, row.labels, "", {}, row.more});
    EXPECT_EQ(ClassMetrics::unasked_values(net->graph()).size(), 2u);
    net->set_input("s", row.scores.data());
    net->set_input("y", row.labels.data());
    net->forward(0);
    // top1 reads whole rows of scores, another way to the same counts.
    for (const char* asked : {"", "confusion", "confusion,top1"}) {
      SCOPED_TRACE(asked);
      const std::unique_ptr<ClassMetrics> metrics =
          *asked ? std::make_unique<ClassMetrics>(*net, parse_class_metrics(asked))
                 : std::make_unique<ClassMetrics>(*net);
      for (const int64_t batches : {2, 3}) {
        metrics->clear();
        for (int64_t batch = 0; batch < batches; ++batch) metrics->add();
        metrics->finish();
        const auto confusion = metrics->confusion("");
        ASSERT_TRUE(confusion);
        EXPECT_EQ(confusion->asked, *asked != 0);
        std::vector<int64_t> expected = row.counts;
        for (int64_t& count : expected) count *= batches;
        EXPECT_EQ(confusion->counts, expected);
      }
    }
  }
}

TEST(ClassMetrics, SayWhichLabelsAreNoClass) {
  Context context(Device::cpu);
  const std::vector<float> scores = {0, 1, 1, 0};
  const auto net = net_of(context, {"", {2, 2}, scores, {}, "", {}});
  const float good[] = {0, 1}, bad[] = {0, 2};
  net->set_input("s", scores.data());
  net->set_input("y", good);
  net->forward(0);
  from_floats(context, bad, net->blob("y"));
  ClassMetrics asked(*net, {"confusion"}), unasked(*net);
  asked.add();
  expect_part(error_of([&] { asked.finish(); }), "1 labels of \"y\" are none of the 2 classes");
  unasked.add();
  unasked.finish();
  EXPECT_EQ(unasked.confusion("")->counts, (std::vector<int64_t>{0, 1, 0, 0}));
}

// The net of a row of classes, and whether its confusion is counted by default.
TEST(ClassMetrics, CountUnaskedForUpTo100ClassesOnly) {
  Context context(Device::cpu);
  for (const auto& [shape, counted] : {std::pair(std::vector<int64_t>{2, 100}, true),
                                       std::pair(std::vector<int64_t>{2, 101}, false),
                                       std::pair(std::vector<int64_t>{2, 2, 3, 3}, true),
                                       std::pair(std::vector<int64_t>{2, 1}, false)}) {
    const auto net = net_of(context, {"", shape, {}, {}, "", {}});
    EXPECT_EQ(ClassMetrics::unasked_values(net->graph()).size(), counted ? 2u : 0u) << shape[1];
  }
}

TEST(ClassMetrics, RefuseWhatTheyCannotMeasure) {
  Context context(Device::cpu);
  expect_part(error_of([] { parse_class_metrics("f1,acu"); }),
              "-metrics f1,acu: there is no \"acu\"");
  const NetFile file = parse_net_text(kNet, "net.prototxt");
  NetOptions options;
  options.state.set_phase(TEST);
  options.keep_blobs = true;
  Net net(context, file.net, options);
  expect_part(error_of([&] { ClassMetrics(net, {"f1"}); }),
              "net \"small\" has no Accuracy or SoftmaxWithLoss layer");
}

// The tests of a run: log lines in Caffe's style, and a value for early stopping.
TEST(ClassMetrics, AreOutputsOfATrainingsTests) {
  Context context(Device::cpu);
  Lines log;
  context.set_log(log);
  const std::string net = R"(
    layer { name: "data" type: "DummyData" top: "x" top: "y" dummy_data_param { shape { dim: 8 dim: 5 }
      shape { dim: 8 } data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 1 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "z" inner_product_param { num_output: 3
      weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "z" bottom: "y" top: "loss" })";
  SolverOptions options;
  options.metrics = {"top2", "confusion"};
  const std::string text =
      "max_iter: 9 random_seed: 1 test_iter: 2 test_interval: 1 snapshot_after_train: false "
      "early_stop { tests: 2 watch { output: \"top2\" min_change: 1 } }";
  Solver solver(context, solver_file(text, net), options);
  solver.solve();
  EXPECT_EQ(solver.iteration(), 2);
  const std::string all = join(log.all, "\n");
  expect_part(all, "    Test net output #1: top2 = ");
  expect_part(all, "Confusion (rows: labels, columns: what the net says):\n");
  expect_part(all, "Early stop in iteration 2: \"top2\" of the last 2 tests is not better than ");
}

class Confusions : public EventReader {
 public:
  void read(const Event& event) override {
    if (const auto* found = std::get_if<event::Confusion>(&event)) all.push_back(*found);
  }
  std::vector<event::Confusion> all;
};

// Test net 0 is a classifier, net 1 is none.
TEST(ClassMetrics, GoUnaskedToReadersAndNotToTheLog) {
  const std::string net = R"(
    layer { name: "data" type: "DummyData" top: "x" top: "y" dummy_data_param { shape { dim: 8 dim: 5 }
      shape { dim: 8 } data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 1 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "z" inner_product_param { num_output: 3
      weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "z" bottom: "y" top: "loss"
      exclude { stage: "plain" } })";
  const std::string solver =
      "max_iter: 4 random_seed: 1 test_iter: 2 test_iter: 2 test_interval: 2 snapshot_after_train: "
      "false test_state { } test_state { stage: \"plain\" } test_initialization: true";
  std::vector<std::string> logs[2];
  for (const bool confusions : {false, true}) {
    Context context(Device::cpu);
    Lines log;
    context.set_log(log);
    SolverOptions options;
    Confusions found;
    options.confusions = confusions;
    options.readers = {&found};
    Solver(context, solver_file(solver, net), options).solve();
    ASSERT_EQ(found.all.size(), confusions ? 3u : 0u);
    for (const event::Confusion& confusion : found.all) {
      EXPECT_EQ(confusion.net, 0);
      EXPECT_FALSE(confusion.asked);
      int64_t records = 0;
      for (const int64_t count : confusion.counts) records += count;
      EXPECT_EQ(records, 16);
      EXPECT_EQ(confusion.counts[3] + confusion.counts[4] + confusion.counts[5], 16);
    }
    for (const std::string& line : log.all) {
      if (line.find("onfusion") != std::string::npos || line.find("Test net output") == 4)
        logs[confusions].push_back(line);
    }
  }
  EXPECT_EQ(logs[0], logs[1]);
  EXPECT_FALSE(logs[1].empty());
}

}  // namespace class_metrics_test
}  // namespace crema::tests
