// metrics.csv next to metrics.jsonl.
#include "solver/readers/metrics_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "solver/readers/metrics_reader.h"
#include "support.h"

namespace crema::tests {
namespace metrics_table_test {

TEST(MetricsTable, RowsAsSpreadsheetsTakeThem) {
  Metric metric{.iteration = 7, .kind = "test", .run = "a1", .net = 2, .time = 1.5};
  EXPECT_EQ(csv_rows(metric), "");
  metric.values = {{"loss", 0.25}, {"a,b", 1e-9},        {"say \"x\"", -3},
                   {"bad", NAN},   {"worse", -INFINITY}, {"two\nlines", 2}};
  EXPECT_EQ(csv_rows(metric),
            "a1,7,test,2,1.5,loss,0.25\na1,7,test,2,1.5,\"a,b\",1e-09\n"
            "a1,7,test,2,1.5,\"say \"\"x\"\"\",-3\na1,7,test,2,1.5,bad,\na1,7,test,2,1.5,worse,\n"
            "a1,7,test,2,1.5,two\\nlines,2\n");
  EXPECT_EQ(csv_rows({.iteration = 3, .kind = "train", .values = {{"lr", 1}}}),
            ",3,train,,0,lr,1\n");
}

// The table without its columns run and time.
std::string short_table(const Folder& folder) {
  std::string rows;
  for (const std::string& line : split(folder.read("metrics.csv"), '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string> cells = split(line, ',');
    rows += cat(cells[1], " ", cells[2], " ", cells[5], " ", cells[6], "\n");
  }
  return rows;
}

void show(MetricsReader& reader, int64_t iteration, double loss) {
  reader.read(event::Display{.iteration = iteration, .loss = loss});
  reader.read(event::LearningRate{iteration, 0.5});
}

TEST(MetricsTable, IsOneCurveWhateverHappens) {
  const Folder folder;
  const std::string header = "iteration kind name value\n";
  const auto row = [](int64_t iteration, const char* loss) {
    return cat(iteration, " train loss ", loss, "\n", iteration, " train data_wait 0\n", iteration,
               " train lr 0.5\n");
  };
  {
    MetricsReader reader(silent_log(), MetricsReader::OneRun{folder.path()});
    reader.read(event::Start{.net = "net"});
    EXPECT_EQ(short_table(folder), header);
    for (int64_t i = 0; i < 6; i += 2) show(reader, i, static_cast<double>(i));
    reader.read(event::RolledBack{.iteration = 5, .to = 2, .scale = 0.5f});
    EXPECT_EQ(short_table(folder),
              header + row(0, "0") + "2 rollback from 5\n2 rollback rate_scale 0.5\n");
    show(reader, 2, 9);
    show(reader, 4, NAN);
  }
  const std::string run = split(split(folder.read("metrics.csv"), '\n')[1], ',')[0];
  {
    MetricsReader reader(silent_log(), MetricsReader::OneRun{folder.path()});
    reader.read(event::Start{.net = "net", .iteration = 4, .run = {.resumed_from = "state"}});
    show(reader, 4, 7);
  }
  EXPECT_EQ(short_table(folder), header + row(0, "0") +
                                     "2 rollback from 5\n2 rollback rate_scale 0.5\n" +
                                     row(2, "9") + row(4, "7"));
  {
    MetricsReader reader(silent_log(), MetricsReader::OneRun{folder.path()});
    reader.read(event::Start{.net = "net"});
    show(reader, 0, 3);
  }
  EXPECT_EQ(short_table(folder), header + row(0, "3"));
  EXPECT_EQ(split(split(folder.read("metrics.csv"), '\n')[1], ',')[0], run);
  EXPECT_EQ(read_runs(folder.file("metrics.jsonl")).size(), 1u);
}

// The confusions of a run with 1000 tests.
struct WrittenConfusions {
  std::vector<int64_t> iterations;
  size_t bytes = 0;
};

WrittenConfusions confusions_of(int64_t classes, bool asked, bool ends) {
  const Folder folder;
  {
    MetricsReader reader(silent_log(), folder.file("metrics.jsonl"));
    reader.read(event::Start{.net = "net"});
    for (int64_t test = 0; test <= 1000; ++test) {
      reader.read(event::TestResult{.iteration = 500 * test, .outputs = {{"accuracy", 0.5f, 0}}});
      event::Confusion confusion{.iteration = 500 * test, .classes = classes, .asked = asked};
      confusion.counts.assign(static_cast<size_t>(classes * classes), 7);
      reader.read(confusion);
      for (int display = 1; display <= 5; ++display) {
        const int64_t at = 500 * test + 100 * display;
        if (test == 1000) continue;
        reader.read(event::Display{.iteration = at, .loss = 0.25});
        reader.read(event::LearningRate{at, 0.01});
      }
    }
    if (ends) reader.read(event::End{500000, false});
  }
  WrittenConfusions written;
  const Run run = read_runs(folder.file("metrics.jsonl")).at(0);
  for (const Metric& metric : run.metrics) {
    if (metric.kind != "confusion") continue;
    EXPECT_EQ(metric.counts.size(), static_cast<size_t>(classes));
    written.iterations.push_back(metric.iteration);
    written.bytes += to_json(metric).size();
  }
  EXPECT_EQ(run.metrics.back().kind, ends ? "end" : "confusion");
  return written;
}

TEST(MetricsFile, HasTheLastConfusionAndStaysSmall) {
  for (const bool ends : {true, false}) {  // an error ends a run without an "end"
    const WrittenConfusions few = confusions_of(3, false, ends),
                            asked = confusions_of(3, true, true),
                            many = confusions_of(100, false, ends);
    EXPECT_EQ(few.iterations, asked.iterations);
    EXPECT_EQ(asked.iterations.size(), 1001u);
    EXPECT_EQ(many.iterations.back(), 500000);
    EXPECT_LT(many.iterations.size(), 40u);
    EXPECT_LT(many.bytes, size_t{800} << 10);
    for (size_t i = 2; i < many.iterations.size(); ++i)  // a page meanwhile shows current values
      EXPECT_LE(many.iterations[i], 3 * many.iterations[i - 1] / 2 + 500);
  }
}

TEST(MetricsFile, ForgetsTheConfusionOfWhatWasRolledBack) {
  const Folder folder;
  {
    MetricsReader reader(silent_log(), folder.file("metrics.jsonl"));
    reader.read(event::Start{.net = "net"});
    for (const int64_t iteration : {1000, 1001, 1002}) {
      event::Confusion confusion{.iteration = iteration, .classes = 100, .asked = false};
      confusion.counts.assign(10000, 7);
      reader.read(confusion);
    }
    reader.read(event::RolledBack{.iteration = 1002, .to = 1001});
  }
  std::vector<int64_t> iterations;
  const crema::Run run = read_runs(folder.file("metrics.jsonl")).at(0);
  for (const Metric& metric : run.metrics) {
    if (metric.kind == "confusion") iterations.push_back(metric.iteration);
  }
  EXPECT_EQ(iterations, std::vector<int64_t>{1000});
}

TEST(MetricsTable, OnlyInRunFoldersAndNeverTheEndOfATraining) {
  const Folder folder;
  MetricsReader(silent_log(), folder.file("metrics.jsonl")).read(event::Start{});
  EXPECT_EQ(folder.names(), std::vector<std::string>{"metrics.jsonl"});
  std::filesystem::create_directory(folder.file("metrics.csv"));
  Lines log;
  MetricsReader reader(log, MetricsReader::OneRun{folder.path()});
  reader.read(event::Start{});
  show(reader, 0, 1);
  ASSERT_EQ(log.warnings.size(), 1u);
  expect_part(log.warnings[0], folder.file("metrics.csv") + ": cannot write");
  expect_part(log.warnings[0], "The training continues and tries again");
  EXPECT_EQ(read_runs(folder.file("metrics.jsonl")).size(), 1u);
}

}  // namespace metrics_table_test
}  // namespace crema::tests
