// iterations.csv: what is written is read again, what later rows outdate is left out, and spikes of losses.
#include "solver/readers/iterations_file.h"

#include <cmath>
#include <limits>

#include "base/files.h"
#include "solver/divergence/loss_spikes.h"
#include "support.h"

namespace crema::tests {
namespace iterations_file_test {

const std::string kName = "iterations.csv";

TEST(Iterations, AreReadAsTheyWereWritten) {
  const Folder folder;
  Lines log;
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<double> losses = {2.30258512496947, 0.1f, 1e-30f, infinite, -3};
  {
    IterationsReader reader(log, folder.file(kName));
    reader.read(event::Start{});
    reader.read(event::WeightHashes{1, {0x123456789abcdef0u, 7}});
    reader.read(event::Losses{0, losses});
    reader.read(event::Losses{5, {std::nan("")}});
  }
  const RecordedIterations all = read_iterations(folder.file(kName));
  ASSERT_EQ(all.end(), 6);
  for (int64_t i = 0; i < 5; ++i)
    EXPECT_EQ(all.loss(i), static_cast<float>(losses[static_cast<size_t>(i)])) << i;
  EXPECT_TRUE(std::isnan(all.loss(5)));
  ASSERT_EQ(all.weights.size(), 1u);
  EXPECT_EQ(all.weights.at(1).all, recorded_weights({0x123456789abcdef0u, 7}).all);
  EXPECT_EQ(all.weights.at(1).parameters, (std::vector<std::string>{"12345678", "00000000"}));
}

struct Row {
  const char* text;
  int64_t first;
  std::vector<float> losses;
  std::vector<int64_t> weights;  // iterations
};

TEST(Iterations, TheLastOnesCount) {
  const Row rows[] = {
      {"iteration,loss,weights,parameters\n0,3,aa,\n1,2,,\n2,1,bb,\n", 0, {3, 2, 1}, {0, 2}},
      // A resume or a rollback.
      {"0,3,aa,\n1,2,,\n2,1,bb,\n1,5,,\n2,4,,\n", 0, {3, 5, 4}, {0}},
      {"5,3,,\n6,2,,\n5,1,cc,\n", 5, {1}, {5}},
      // A run that began elsewhere, and a line that was cut off.
      {"100,3,,\n101,2,,\n10", 100, {3, 2}, {}},
      {"7,3,,\n2,2,,\n", 2, {2}, {}},
      {"0,1,,\n90000000,2,,\n", 90000000, {2}, {}},
      {"", 0, {}, {}},
  };
  const Folder folder;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    folder.write(kName, row.text);
    const RecordedIterations all = read_iterations(folder.file(kName));
    EXPECT_EQ(all.first, row.first);
    EXPECT_EQ(all.losses, row.losses);
    std::vector<int64_t> weights;
    for (const auto& [iteration, hashes] : all.weights) weights.push_back(iteration);
    EXPECT_EQ(weights, row.weights);
  }
}

TEST(Iterations, NameTheLineThatIsDamaged) {
  const Folder folder;
  for (const char* line : {"1,2,,,\n", "1,2\n", "x,2,,\n", "1,two,,\n", "-1,2,,\n", "\n"}) {
    folder.write(kName, cat("iteration,loss,weights,parameters\n0,1,,\n", line));
    expect_part(error_of([&] { read_iterations(folder.file(kName)); }),
                "iterations.csv:3: expected iteration,loss,weights,parameters");
  }
}

TEST(Iterations, GoOnInAFileWithoutItsCutLine) {
  const Folder folder;
  folder.write(kName, "iteration,loss,weights,parameters\n0,1,,\n1,0.");
  Lines log;
  {
    IterationsReader reader(log, folder.file(kName));
    reader.read(event::Start{});
    reader.read(event::Losses{1, {0.5}});
  }
  EXPECT_EQ(folder.read(kName), "iteration,loss,weights,parameters\n0,1,,\n1,0.5,,\n");
}

// Losses that fall from 2 to 1 with noise of this size, and some of them replaced.
std::vector<int64_t> spikes(double noise, const std::vector<std::pair<int64_t, double>>& others) {
  LossSpikes look;
  std::vector<int64_t> found;
  for (int64_t i = 0; i < 400; ++i) {
    double loss =
        1 + std::exp(-static_cast<double>(i) / 100) + noise * std::sin(static_cast<double>(i * i));
    for (const auto& [iteration, other] : others) {
      if (iteration == i) loss = other;
    }
    if (look.look_at(i, loss)) found.push_back(i);
  }
  return found;
}

TEST(LossSpikes, AreFarAboveTheLossesBefore) {
  struct Case {
    double noise;
    std::vector<std::pair<int64_t, double>> others;
    std::vector<int64_t> found;
  };
  const Case cases[] = {
      {0.05, {}, {}},
      {0.4, {}, {}},
      {0.05, {{200, 4}}, {200}},
      {0.05, {{200, 1.4}}, {}},  // less than half above the usual
      {0.4, {{200, 4}}, {}},     // not unusual with so much noise
      {0.05, {{15, 40}}, {}},    // too early to know what is usual
      {0.05, {{200, 4}, {201, 3.9}, {205, 6}, {300, 3}}, {200, 300}},
      {0.05, {{200, std::nan("")}, {210, std::numeric_limits<double>::infinity()}}, {}},
  };
  for (const Case& one : cases) EXPECT_EQ(spikes(one.noise, one.others), one.found) << one.noise;
}

}  // namespace iterations_file_test
}  // namespace crema::tests
