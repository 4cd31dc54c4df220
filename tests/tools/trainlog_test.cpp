// The console of train, test and time against what BVLC Caffe printed for the same files
// (goldens/trainlog), message by message. Times and the moments at which data threads report are
// the machine's; all else must be there, in this order.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <sstream>

#include "tools/program.h"

namespace crema::tests {
namespace trainlog_test {

// Caffe's own threads report these whenever they come by.
bool is_unordered(const std::string& message) {
  return message == "Restarting data prefetching from start." || message == "Waiting for data";
}

std::string without_times(std::string message) {
  static const std::pair<std::regex, const char*> measures[] = {
      {std::regex(R"(\(\S+ iter/s, \S+s/)"), "(? iter/s, ?s/"},
      // The first weights of `time` are random.
      {std::regex(R"(Initial loss: \S+)"), "Initial loss: ?"},
      {std::regex(R"((forward|backward|time|pass|Forward-Backward|Total Time): \S+ ms\.)"),
       "$1: ? ms."}};
  for (const auto& [measure, neutral] : measures)
    message = std::regex_replace(message, measure, neutral);
  return message;
}

// Equal words; numbers may differ in their last digits.
bool agree(const std::string& a, const std::string& b) {
  if (a == b) return true;
  std::istringstream words_a(a), words_b(b);
  std::string x, y;
  while (true) {
    const bool more_a = static_cast<bool>(words_a >> x), more_b = static_cast<bool>(words_b >> y);
    if (more_a != more_b) return false;
    if (!more_a) return true;
    if (x == y) continue;
    char *end_x = nullptr, *end_y = nullptr;
    const double u = std::strtod(x.c_str(), &end_x), v = std::strtod(y.c_str(), &end_y);
    if (end_x == x.c_str() || end_y == y.c_str() || *end_x || *end_y) return false;
    if (std::abs(u - v) > 1e-4 * std::abs(v)) return false;
  }
}

class Trainlog : public testing::Test {
 protected:
  void SetUp() override {
#ifndef CREMA_LEVELDB
    GTEST_SKIP() << "the test net reads LevelDB, which this build has not";
#endif
    folder_.copy_golden("formats/lmdb_raw", "lmdb_raw");
    folder_.copy_golden("formats/leveldb_raw", "leveldb_raw");
    folder_.copy_golden("trainlog", "trainlog");
  }

  // Every golden message, in order; our own lines may come between them.
  void expect_log(const std::string& golden, const std::string& command) {
    Outcome outcome = run(folder_, command, "trainlog");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::vector<std::string> ours = outcome.messages();
    outcome.err = folder_.read("trainlog/" + golden);
    size_t at = 0;
    for (const std::string& message : outcome.messages()) {
      if (is_unordered(message)) continue;
      const std::string wanted = without_times(message);
      const size_t before = at;
      while (at < ours.size() && !agree(without_times(ours[at]), wanted)) ++at;
      ASSERT_LT(at, ours.size()) << "missing, or not in its place: " << message
                                 << "\nafter: " << (before > 0 ? ours[before - 1] : "the beginning")
                                 << "\nwhere ours is: "
                                 << (before < ours.size() ? ours[before] : "at its end");
      EXPECT_LE(at - before, 12u) << "many lines of our own before: " << message;
      ++at;
    }
  }

  Folder folder_;
};

TEST_F(Trainlog, Train) {
  expect_log("train.log", "caffe train --solver=solver.prototxt --weights=init.caffemodel");
  EXPECT_TRUE(folder_.has("trainlog/tiny_iter_30.caffemodel"));
  EXPECT_TRUE(folder_.has("trainlog/tiny_iter_30.solverstate"));
}

TEST_F(Trainlog, Resume) {
  expect_log("resume.log",
             "caffe train --solver=solver.prototxt --snapshot=tiny_iter_15.solverstate");
}

TEST_F(Trainlog, Test) {
  run(folder_, "train -solver solver.prototxt -weights init.caffemodel", "trainlog");
  expect_log("test.log",
             "caffe test --model=net.prototxt --weights=tiny_iter_30.caffemodel --iterations=4");
}

TEST_F(Trainlog, Time) { expect_log("time.log", "caffe time --model=net.prototxt --iterations=3"); }

}  // namespace trainlog_test
}  // namespace crema::tests
