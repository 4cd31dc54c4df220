// Our logs through the expressions of public parsers: Caffe's parse_log.py, parse_log.sh and
// extract_seconds.py, DIGITS and Intel's plots. Each must find the numbers that metrics.jsonl has
// for the same run.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <sstream>

#include "solver/readers/metrics_file.h"
#include "tools/program.h"

namespace crema::tests {
namespace log_parsers_test {

using Values = std::map<std::string, double>;  // by output; the rate is "lr"
using Rows = std::map<int64_t, Values>;        // by iteration

struct Tables {
  Rows train;
  std::map<int, Rows> tests;
};

// Trains the tiny net: to iteration 12 and from there on, in one log, until it diverges, and with
// images to wait for.
class LogParsers : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<Folder>();
    folder_->write("net.prototxt", R"(name: "tiny"
layer { name: "data" type: "DummyData" top: "x" top: "y" dummy_data_param {
  shape { dim: 8 dim: 4 } shape { dim: 8 }
  data_filler { type: "gaussian" std: 1 } data_filler { value: 1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "y" top: "accuracy"
  include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "y" top: "loss" }
)");
    folder_->copy_golden("formats/lmdb_encoded", "lmdb_encoded");
    folder_->write("slow.prototxt", R"(name: "slow"
layer { name: "data" type: "Data" top: "x" top: "y" data_param { source: "lmdb_encoded" backend: LMDB
  batch_size: 64 threads: 1 } transform_param { crop_size: 1 } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 15 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "y" top: "accuracy"
  include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "y" top: "loss" }
)");
    const std::string solver =
        "net: \"net.prototxt\" test_state { } test_state { } test_iter: 2 test_iter: 3 "
        "test_interval: 8 lr_policy: \"step\" gamma: 0.1 stepsize: 12 momentum: 0.9 display: 4 "
        "snapshot_prefix: \"tiny\" random_seed: 5 ";
    folder_->write("solver.prototxt", solver + "base_lr: 0.1 max_iter: 24 snapshot: 12");
    folder_->write("diverging.prototxt",
                   solver + "base_lr: 1e38 max_iter: 12 on_divergence: IGNORE");
    const Outcome outcome = run_shell(
        *folder_,
        "\"$TOOLS\"/caffe train --solver=solver.prototxt -set max_iter=12 2>train.log && "
        "\"$TOOLS\"/caffe train --solver=solver.prototxt --snapshot=tiny_iter_12.solverstate "
        "2>>train.log && mv metrics.jsonl train.jsonl && "
        "\"$TOOLS\"/caffe train --solver=diverging.prototxt 2>nan.log && "
        "mv metrics.jsonl nan.jsonl"
#ifdef CREMA_OPENCV
        " && \"$TOOLS\"/caffe train --solver=solver.prototxt -model slow.prototxt -set "
        "base_lr=1e-4 2>waiting.log && mv metrics.jsonl waiting.jsonl"
#endif
    );
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  // The metrics of the same run: of "train.log" or "nan.log".
  static Tables truth(const std::string& log, bool with_nan = true) {
    Tables tables;
    const std::string path = folder_->file(log.substr(0, log.find('.')) + ".jsonl");
    for (const crema::Run& trained : read_runs(path)) {
      for (const Metric& metric : trained.metrics) {
        // The last line of "train" is of the forward pass after the last update.
        const bool train = metric.kind == "train" && metric.iteration < trained.iterations();
        if (!train && metric.kind != "test") continue;
        Rows& rows = train ? tables.train : tables.tests[metric.net];
        for (const auto& [name, value] : metric.values) {
          if (name != "loss" && name != "accuracy" && name != "lr") continue;
          if (with_nan || std::isfinite(value)) rows[metric.iteration][name] = value;
        }
      }
    }
    return tables;
  }

  static std::vector<std::string> logs() {
    std::vector<std::string> all = {"train.log", "nan.log"};
#ifdef CREMA_OPENCV
    all.push_back("waiting.log");
#endif
    return all;
  }

  static std::unique_ptr<Folder> folder_;
};

std::unique_ptr<Folder> LogParsers::folder_;

// Logs have six digits.
bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= 1e-5 * std::abs(b);
}

void expect_same(const Rows& found, const Rows& wanted) {
  EXPECT_FALSE(wanted.empty());
  EXPECT_EQ(found.size(), wanted.size());
  for (const auto& [iteration, values] : wanted) {
    ASSERT_EQ(found.count(iteration), 1u) << iteration;
    const Values& row = found.at(iteration);
    EXPECT_EQ(row.size(), values.size()) << iteration;
    for (const auto& [name, value] : values) {
      ASSERT_EQ(row.count(name), 1u) << iteration << " " << name;
      EXPECT_TRUE(same(row.at(name), value)) << iteration << " " << name << ": " << row.at(name);
    }
  }
}

// A parser that goes through the lines with expressions and remembers iteration and test net.
struct Expressions {
  const char* name;
  const char* line;       // what of a line the others look at: its group 1
  const char* iteration;  // group 1: the iteration
  const char* testing;    // group 1: the test net
  const char* train;      // groups 2 and 3: name and value
  const char* test;
  const char* rate;  // group 1
  bool takes_nan;
};

const Expressions kExpressions[] = {
    {"ParseLogPy", R"((.*))", R"(Iteration (\d+))", R"(Testing net \(#(\d+)\))",
     R"(Train net output #(\d+): (\S+) = ([\.\deE+-]+))",
     R"(Test net output #(\d+): (\S+) = ([\.\deE+-]+))",
     R"(lr = ([-+]?[0-9]*\.?[0-9]+([eE]?[-+]?[0-9]+)?))", false},
    // re.match: from the beginning of the message.
    {"Digits", R"(\w\d{4} \S{8}.*]\s+(\S.*)$)", R"(^Iteration (\d+))",
     R"(^Iteration \d+, Testing net \(#(\d+)\))",
     R"(^Train net output #(\d+): (\S*) = (nan|[-+]?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?))",
     R"(^Test net output #(\d+): (\S*) = (nan|[-+]?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?))",
     R"(^Iteration \d+.*lr = ([-+]?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?))", true},
};

Tables tables_of(const Expressions& parser, const std::string& log) {
  const std::regex part(parser.line), iteration(parser.iteration), testing(parser.testing),
      train(parser.train), test(parser.test), rate(parser.rate);
  Tables tables;
  int64_t at = -1;
  int net = 0;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, part)) continue;
    const std::string message = match[1];
    if (std::regex_search(message, match, iteration)) at = std::stoll(match[1]);
    if (at < 0) continue;
    if (std::regex_search(message, match, testing)) net = std::stoi(match[1]);
    if (std::regex_search(message, match, rate)) tables.train[at]["lr"] = std::stod(match[1]);
    if (std::regex_search(message, match, train)) tables.train[at][match[2]] = std::stod(match[3]);
    if (std::regex_search(message, match, test))
      tables.tests[net][at][match[2]] = std::stod(match[3]);
  }
  return tables;
}

TEST_F(LogParsers, ExpressionsFindTheTables) {
  for (const Expressions& parser : kExpressions) {
    for (const std::string& log : logs()) {
      SCOPED_TRACE(std::string(parser.name) + " " + log);
      const Tables found = tables_of(parser, folder_->read(log));
      const Tables wanted = truth(log, parser.takes_nan);
      expect_same(found.train, wanted.train);
      ASSERT_EQ(found.tests.size(), 2u);
      for (const auto& [net, rows] : wanted.tests) expect_same(found.tests.at(net), rows);
    }
  }
}

// Shell pipelines that print pairs of an iteration and a value; $log is the log.
struct Pipeline {
  const char* name;
  const char* script;
  const char* output;
  bool test;
};

#define ITERATIONS "sed 's/.*Iteration \\([[:digit:]]*\\).*/\\1/g'"
#define TESTS                                                                                 \
  "sed '/Iteration .* Testing net/,/Iteration *. loss/!d' $log >part; sed -i '/Waiting for "  \
  "data/d; /prefetch queue empty/d; /Iteration .* loss/d; /Iteration .* lr/d; /Train net/d' " \
  "part; "                                                                                    \
  "grep 'Iteration ' part | " ITERATIONS " >numbers; "

const Pipeline kPipelines[] = {
    {"ParseLogShAccuracy",
     TESTS "grep 'Test net output #0' part | awk '{print $11}' | paste numbers -", "accuracy",
     true},
    {"ParseLogShTestLoss",
     TESTS "grep 'Test net output #1' part | awk '{print $11}' | paste numbers -", "loss", true},
    {"ParseLogShRate",
     "grep ', lr = ' $log | " ITERATIONS
     " >numbers; grep ', lr = ' $log | awk '{print $9}' | paste numbers -",
     "lr", false},
    // The last line before a snapshot at the end is of no row.
    {"ParseLogShLoss",
     "grep ', loss = ' $log | grep '(' | tee part | " ITERATIONS
     " >numbers; awk -F = '{print $2}' part | paste numbers -",
     "loss", false},
    {"IntelTrainLoss",
     "awk '/, loss = / && /iter\\/s/ {n = $6} /Train net output #0/ {print n, $(NF-1)}' $log",
     "loss", false},
    {"IntelTestLoss",
     "awk '/Testing net/ {n = substr($(NF-3), 1, length($(NF-3)) - 1)} "
     "/Test net output #1/ {print n, $(NF-1)}' $log",
     "loss", true},
};

TEST_F(LogParsers, PipelinesFindTheirColumns) {
  for (const Pipeline& pipeline : kPipelines) {
    for (const std::string& log : logs()) {
      SCOPED_TRACE(std::string(pipeline.name) + " " + log);
      std::vector<std::pair<int64_t, double>> wanted;
      const Tables tables = truth(log);
      for (const auto& [iteration, values] : pipeline.test ? tables.tests.at(0) : tables.train) {
        wanted.emplace_back(iteration, values.at(pipeline.output));
        if (pipeline.test)  // the second net's lines follow the first one's
          wanted.emplace_back(iteration, tables.tests.at(1).at(iteration).at(pipeline.output));
      }
      const Outcome outcome = run_shell(*folder_, "log=" + log + "; " + pipeline.script);
      std::istringstream found(outcome.out);
      std::string iteration, value;
      for (const auto& [wanted_iteration, wanted_value] : wanted) {
        ASSERT_TRUE(found >> iteration >> value) << outcome.out;
        EXPECT_EQ(std::stoll(iteration), wanted_iteration);
        EXPECT_TRUE(same(std::stod(value), wanted_value)) << value << " " << wanted_value;
      }
      EXPECT_FALSE(found >> iteration) << outcome.out;
    }
  }
}

#ifdef CREMA_OPENCV
// Lines that these expressions match as a whole are Caffe's, and ours have Caffe's words.
TEST_F(LogParsers, LinesAreCaffesWhereTrainingWaits) {
  const std::string log = folder_->read("waiting.log");
  static const std::regex waits(R"(\]     Waiting for data: \d+ % of the time\n)"),
      display(R"(Iteration (\d+) \(([\.\deE+-]+) iter/s, (\S+) iters\), loss = ([\.\deE+-]+)\n)");
  EXPECT_TRUE(std::regex_search(log, waits)) << log;
  const auto displays =
      std::distance(std::sregex_iterator(log.begin(), log.end(), display), std::sregex_iterator());
  EXPECT_EQ(displays, 6);
}
#endif

// extract_seconds.py: blanks part a line; "I1125" is the day, and the time has a part of a second.
TEST_F(LogParsers, EveryLineOfTheTableHasItsTime) {
  std::istringstream lines(folder_->read("train.log"));
  bool solving = false;
  int iterations = 0;
  for (std::string line; std::getline(lines, line);) {
    solving |= line.find("Solving") != std::string::npos;
    if (line.find("Iteration") == std::string::npos) continue;
    EXPECT_TRUE(solving) << "the time of the start is that of a line with Solving";
    static const std::regex time(R"(^\w\d\d\d\d \d\d:\d\d:\d\d\.\d{6} .*)");
    EXPECT_TRUE(std::regex_match(line, time)) << line;
    ++iterations;
  }
  EXPECT_GT(iterations, 10);
}

// Our own.
TEST_F(LogParsers, ParseLogFindsTheTables) {
  for (const std::string& log : logs()) {
    SCOPED_TRACE(log);
    ASSERT_EQ(run(*folder_, "crema parse_log " + log).code, 0);
    const auto rows_in = [&](const std::string& name, bool with_rate) {
      Rows rows;
      std::istringstream lines(folder_->read(name));
      std::string line;
      std::getline(lines, line);
      std::vector<std::string> columns;
      std::istringstream head(line);
      for (std::string column; std::getline(head, column, ',');) columns.push_back(column);
      while (std::getline(lines, line)) {
        std::istringstream cells(line);
        std::string cell;
        int64_t iteration = -1;
        for (const std::string& column : columns) {
          std::getline(cells, cell, ',');
          const double value = std::stod(cell);
          if (column == "NumIters") {
            iteration = static_cast<int64_t>(value);
          } else if (column != "Seconds" && (column != "LearningRate" || with_rate)) {
            rows[iteration][column == "LearningRate" ? "lr" : column] = value;
          }
        }
      }
      return rows;
    };
    const Tables wanted = truth(log);
    expect_same(rows_in(log + ".train", true), wanted.train);
    expect_same(rows_in(log + ".test", false), wanted.tests.at(0));
    expect_same(rows_in(log + ".test1", false), wanted.tests.at(1));
  }
}

}  // namespace log_parsers_test
}  // namespace crema::tests
