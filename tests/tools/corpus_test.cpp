// The nets of tests/corpus, written as people write them in their repositories: each is trained for
// 20 iterations on random data, on the CPU and on a GPU where there is one. Lines that open a file
// say how:
//   # assume: data=4x3x32x32,label=4    what -assume gets; "default" when there is no such line
//   # rate: 0.001                       base_lr; 0.01 when there is no such line
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "base/files.h"
#include "device/context.h"
#include "tools/program.h"

namespace crema::tests {
namespace corpus_test {

constexpr const char* kCorpus = CREMA_TEST_DATA "/corpus";
constexpr int kIterations = 20;

std::string stated(const std::string& text, const std::string& key, const std::string& otherwise) {
  std::smatch match;
  return std::regex_search(text, match, std::regex("# " + key + ": *(\\S+)")) ? match[1].str()
                                                                              : otherwise;
}

std::vector<std::string> corpus() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus))
    if (entry.path().extension() == ".prototxt") names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

void expect_trains(const std::string& net, const std::string& text, const std::string& device) {
  const Folder folder;
  folder.write("solver.prototxt",
               cat("net: \"", net, "\"\nbase_lr: ", stated(text, "rate", "0.01"),
                   "\nlr_policy: \"fixed\"\nmomentum: 0.9\nmax_iter: ", kIterations,
                   "\ndisplay: 1\nsnapshot_after_train: false\nrandom_seed: 1\n"));
  const Outcome outcome = run(folder, cat("crema train -solver solver.prototxt -tune off -assume ",
                                          stated(text, "assume", "default"), " ", device));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::regex line("Iteration \\d+ .*, loss = (\\S+)");
  int losses = 0;
  for (const std::string& message : outcome.messages()) {
    std::smatch match;
    if (!std::regex_search(message, match, line)) continue;
    ++losses;
    EXPECT_TRUE(std::isfinite(std::stod(match[1]))) << message;
  }
  EXPECT_EQ(losses, kIterations) << outcome.err;
}

class CorpusTest : public testing::TestWithParam<std::string> {};

TEST_P(CorpusTest, Trains) {
  const std::string net = cat(kCorpus, "/", GetParam(), ".prototxt");
  const std::string text = read_file(net);
  {
    SCOPED_TRACE("CPU");
    expect_trains(net, text, "");
  }
  if (gpu_count() == 0) return;
  SCOPED_TRACE("GPU");
  expect_trains(net, text, "-gpu 0");
}

// Reorder is the planner's own; a joined type's name has a +.
TEST(Corpus, HasEveryLayerType) {
  const Folder folder;
  std::set<std::string> used;
  for (const std::string& name : corpus()) {
    folder.write("net.prototxt", read_file(cat(kCorpus, "/", name, ".prototxt")));
    const Outcome today = run(folder, "crema upgrade_net_proto_text net.prototxt today.prototxt");
    ASSERT_EQ(today.code, 0) << name << ": " << today.err;
    const std::string text = folder.read("today.prototxt");
    const std::regex type("type: *\"(\\w+)\"");
    for (std::sregex_iterator at(text.begin(), text.end(), type), end; at != end; ++at)
      used.insert((*at)[1]);
  }
  const Outcome layers = run(folder, "crema layers");
  ASSERT_EQ(layers.code, 0) << layers.err;
  std::istringstream lines(layers.out);
  int types = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string type = line.substr(0, line.find(' '));
    if (type.empty() || type.find('+') != std::string::npos || type == "Reorder") continue;
    ++types;
    EXPECT_TRUE(used.count(type)) << "no net of tests/corpus has a layer of type " << type;
  }
  EXPECT_GT(types, 50);
}

INSTANTIATE_TEST_SUITE_P(Nets, CorpusTest, testing::ValuesIn(corpus()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

}  // namespace corpus_test
}  // namespace crema::tests
