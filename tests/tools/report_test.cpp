// `crema report`: which run it shows, whether weights and net are that run's, and that it tests
// every record once.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "tools/program.h"

namespace crema::tests {
namespace report_test {

// Seven images of 2 x 3 in an LMDB, read three at a time.
void make_images(const Folder& folder) {
  std::string images("\0\0\x08\x03\0\0\0\x07\0\0\0\x02\0\0\0\x03", 16),
      labels("\0\0\x08\x01\0\0\0\x07", 8);
  for (int i = 0; i < 42; ++i) images += static_cast<char>(i * i % 251);
  for (int i = 0; i < 7; ++i) labels += static_cast<char>(i % 2);
  folder.write("images", images);
  folder.write("labels", labels);
  ASSERT_EQ(run(folder, "convert_mnist_data images labels digits_lmdb").code, 0);
}

// A net of one layer with so many outputs, and its solver.
void make_net(const Folder& folder, const std::string& name, int outputs) {
  folder.write(name + ".prototxt",
               "name: \"" + name +
                   "\"\nlayer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" "
                   "transform_param { scale: 0.01 } data_param { source: \"digits_lmdb\" "
                   "batch_size: 3 backend: LMDB } }\n"
                   "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" "
                   "inner_product_param { num_output: " +
                   std::to_string(outputs) +
                   " weight_filler { type: \"xavier\" } } }\n"
                   "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: "
                   "\"label\" top: \"loss\" }\n");
  folder.write(name + "_solver.prototxt",
               "net: \"" + name +
                   ".prototxt\" base_lr: 0.1 lr_policy: \"fixed\" display: 2 snapshot: 4 "
                   "ema_decay: 0.5 snapshot_prefix: \"" +
                   name + "\" max_iter: 8 random_seed: 3\n");
}

void train(const Folder& folder, const std::string& name, const std::string& more = "") {
  const Outcome outcome = run(folder, "train -solver " + name + "_solver.prototxt " + more);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
}

// The names of the runs in the order of their first lines.
std::vector<std::string> runs_in(const std::string& metrics) {
  static const std::regex name("\"run\":\"([0-9a-f]{8})\"");
  std::vector<std::string> names;
  for (std::sregex_iterator at(metrics.begin(), metrics.end(), name), end; at != end; ++at) {
    if (std::count(names.begin(), names.end(), (*at)[1].str()) == 0) names.push_back((*at)[1]);
  }
  return names;
}

TEST(Report, TakesTheRunThatTheWeightsBelongTo) {
  const Folder folder;
  make_images(folder);
  make_net(folder, "two", 2);
  make_net(folder, "three", 3);
  train(folder, "two");
  train(folder, "three");
  const std::vector<std::string> runs = runs_in(folder.read("metrics.jsonl"));
  ASSERT_EQ(runs.size(), 2u) << folder.read("metrics.jsonl");

  struct Row {
    std::string flags;
    int run;
    const char* why;
    const char* note;  // "": nothing to note
  };
  const std::string two = "-model two.prototxt -weights two_iter_", end = ".caffemodel ";
  folder.write("deploy.prototxt", std::regex_replace(folder.read("two.prototxt"),
                                                     std::regex("scale: 0.01"), "scale: 0.02"));
  for (const Row& row :
       {Row{"", 1, "the last in the file; -run_id chooses another", ""},
        Row{two + "8" + end, 0, "the one that -weights belong to", ""},
        Row{two + "4" + end, 0, "the one that -weights belong to", ""},
        Row{two + "8_ema" + end, 0, "the one that -weights belong to", ""},
        Row{"-model deploy.prototxt -weights two_iter_8.caffemodel", 0,
            "the one that -weights belong to", "(two.prototxt), but a different text."},
        Row{two + "8" + end + "-run_id " + runs[1].substr(0, 5), 1, "as -run_id says",
            "its parameters differ. -weights belong to run "},
        Row{"-run_id " + runs[0], 0, "as -run_id says", ""}}) {
    const Outcome outcome = run(folder, "report metrics.jsonl -output page.html " + row.flags);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const std::string page = folder.read("page.html"),
                      said = "Run " + runs[row.run] + " (" + row.why + "): net " +
                             (row.run == 0 ? "two (two" : "three (three");
    expect_part(outcome.err, said);
    expect_part(page, said);
    expect_part(outcome.out, runs[0]);
    expect_part(outcome.out, runs[1]);
    if (*row.note) {
      expect_part(outcome.err, row.note);
      expect_part(page, std::string("<p class=\"warning\">"));
      expect_part(page, row.note);
    } else {
      EXPECT_EQ(page.find("<p class=\"warning\">"), std::string::npos) << row.flags;
    }
  }
  const Outcome unknown = run(folder, "report metrics.jsonl -run_id xyz");
  EXPECT_EQ(unknown.code, 1);
  expect_part(unknown.errors().at(0), "no such run; it has " + runs[0] + ", " + runs[1]);
}

TEST(Report, SaysWhenTheWeightsAreOfAnotherRun) {
  const Folder folder;
  make_images(folder);
  make_net(folder, "two", 2);
  train(folder, "two");
  std::filesystem::copy(folder.file("two_iter_8.caffemodel"), folder.file("first.caffemodel"));
  const std::string first = folder.read("metrics.jsonl");
  folder.write("two_solver.prototxt", folder.read("two_solver.prototxt") + "momentum: 0.9\n");
  train(folder, "two");
  const std::vector<std::string> runs = runs_in(folder.read("metrics.jsonl"));
  ASSERT_EQ(runs.size(), 2u);
  const std::string flags = " -model two.prototxt -weights first.caffemodel -output page.html";
  const Outcome outcome = run(folder, "report metrics.jsonl -run_id " + runs[1] + flags);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.err, "-weights belong to no snapshot of run " + runs[1] + ", but of run " +
                               runs[0] + ". The filters and");
  folder.write("second.jsonl", folder.read("metrics.jsonl").substr(first.size()));
  expect_part(run(folder, "report second.jsonl" + flags).err, "nor of any other in the file.");
}

TEST(Report, AResumedRunGoesOnWithItsCurve) {
  const Folder folder;
  make_images(folder);
  make_net(folder, "two", 2);
  train(folder, "two");
  // As a kill in the middle of a line leaves it.
  folder.write("metrics.jsonl", folder.read("metrics.jsonl") + "{\"iteration\":9,\"ki");
  train(folder, "two", "-snapshot two_iter_4.solverstate");
  const std::string metrics = folder.read("metrics.jsonl");
  const std::vector<std::string> runs = runs_in(metrics);
  ASSERT_EQ(runs.size(), 1u) << metrics;
  expect_part(metrics, "\"resumed_from\":\"two_iter_4.solverstate\"");
  const Outcome outcome = run(folder,
                              "report metrics.jsonl -model two.prototxt -weights "
                              "two_iter_8.caffemodel -output page.html");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "") << "there is but one run";
  expect_part(folder.read("page.html"), "Run " + runs[0] + ": net two (two.prototxt)");
}

TEST(Report, TestsEveryRecordOnce) {
  const Folder folder;
  make_images(folder);
  make_net(folder, "two", 2);
  train(folder, "two");
  const auto tested = [&](const std::string& flags) {
    const Outcome outcome = run(folder,
                                "report metrics.jsonl -model two.prototxt -weights "
                                "two_iter_8.caffemodel -output page.html " +
                                    flags);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::string page = folder.read("page.html");
    static const std::regex count("([0-9]+) of ([0-9]+) test samples"), picture("<figure>");
    std::smatch match;
    EXPECT_TRUE(std::regex_search(page, match, count)) << page;
    const auto shown = std::distance(std::sregex_iterator(page.begin(), page.end(), picture), {});
    EXPECT_EQ(shown, std::stoi(match[1])) << "each mistake once";
    return std::stoi(match[2]);
  };
  EXPECT_EQ(tested(""), 7);
  EXPECT_EQ(tested("-iterations 2"), 6);
  EXPECT_EQ(tested("-iterations 100"), 7);
}

TEST(Report, ShowsAllOfARunFolder) {
  const Folder folder;
  make_images(folder);
  make_net(folder, "two", 2);
  folder.write("two_solver.prototxt",
               folder.read("two_solver.prototxt") + "test_iter: 3 test_interval: 4\n");
  train(folder, "two", "-run runs/first");
  folder.write("runs/first/labels.txt", "even\nodd & more\n");
  expect_part(folder.read("runs/first/metrics.jsonl"), "\"kind\":\"confusion\"");
  EXPECT_EQ(run(folder, "report runs -output page.html").code, 0);
  const std::string page = folder.read("page.html");
  for (const char* part :
       {"<h1>first</h1>", "Iterations per second</h2>", "Waiting for data</h2>",
        "The test of iteration 8: one row per label", "<th>odd &amp; more</th>",
        "First layer: ip, 2 filters of 2 × 3", "title=\"odd &amp; more → even: ", "class=\"net\"",
        "<summary>Solver</summary><pre>", "<summary>Net as text</summary><pre>"})
    expect_part(page, part);
}

TEST(Report, NamesClassesAsTheDataOfTheRunDo) {
  const Folder folder;
  make_images(folder);
  make_net(folder, "two", 2);
  folder.write("two_solver.prototxt",
               folder.read("two_solver.prototxt") + "test_iter: 3 test_interval: 4\n");
  folder.write("digits_lmdb/labels.txt", "even\nodd\n");
  train(folder, "two", "");
  folder.write("labels.txt", "apple\nbanana\n");  // of something else
  const auto page = [&](const std::string& flags) {
    const Outcome outcome = run(folder, "report metrics.jsonl -output page.html " + flags);
    return outcome.code == 0 ? folder.read("page.html") : outcome.err;
  };
  expect_part(page(""), "<th>odd</th>");
  expect_part(page("-labels labels.txt"), "<th>banana</th>");
  folder.write("one", "even\n");
  expect_part(page("-labels one"), "one: names 1 class, but the run's confusion matrix has 2");
  folder.write("digits_lmdb/labels.txt", "even\n");
  expect_part(run(folder, "crema check -solver two_solver.prototxt").out,
              "num_output is 2, but digits_lmdb/labels.txt names 1 class");
  const Outcome again = run(folder, "train -solver two_solver.prototxt");
  EXPECT_EQ(again.code, 0) << again.err;
  expect_part(again.err, "This run goes on with numbers instead of names");
  expect_part(run(folder,
                  "test -model two.prototxt -weights two_iter_8.caffemodel -metrics "
                  "confusion -iterations 1")
                  .err,
              "digits_lmdb/labels.txt: names 1 class, but the net has 2");
}

TEST(Report, ADivergedRunEndsWithItsLoss) {
  const Folder folder;
  make_images(folder);
  make_net(folder, "two", 2);
  folder.write("two.prototxt", std::regex_replace(folder.read("two.prototxt"),
                                                  std::regex("scale: 0.01"), "scale: 3e38"));
  const Outcome outcome = run(folder, "train -solver two_solver.prototxt");
  EXPECT_EQ(outcome.code, 1);
  ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
  expect_part(outcome.errors()[0], "in iteration 0: the loss is nan. It begins in layer \"data\"");
  expect_part(outcome.errors()[0], "No snapshot was written before");
  expect_part(folder.read("metrics.jsonl"), "\"values\":{\"loss\":null}}");
  EXPECT_EQ(run(folder, "report metrics.jsonl").code, 0);
}

}  // namespace report_test
}  // namespace crema::tests
