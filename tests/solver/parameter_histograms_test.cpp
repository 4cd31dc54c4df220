// Histograms of parameters and gradients, and the net as an event.
#include "solver/events/parameter_histograms.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "fixtures.h"
#include "solver/events/run_identity.h"

namespace crema::tests {
namespace parameter_histograms_test {

struct HistogramRow {
  std::vector<float> values;
  double min, max, count, sum, sum_of_squares;
  size_t buckets;
};

TEST(Histograms, CountEachFiniteValueOnce) {
  const float inf = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  const HistogramRow rows[] = {
      {{1, 2, 3}, 1, 3, 3, 6, 14, 64},
      {{-1, nan, 1, inf, -inf}, -1, 1, 2, 0, 2, 64},
      {{5, 5, 5}, 5, 5, 3, 15, 75, 1},
      {{0}, 0, 0, 1, 0, 0, 1},
      {{nan}, 0, 0, 0, 0, 0, 0},
      {{}, 0, 0, 0, 0, 0, 0},
      {{-3e38f, 3e38f}, -3e38f, 3e38f, 2, 0, 2.0 * 3e38f * 3e38f, 64},
  };
  for (const HistogramRow& row : rows) {
    const event::Histogram histogram = histogram_of(row.values);
    EXPECT_EQ(histogram.min, row.min);
    EXPECT_EQ(histogram.max, row.max);
    EXPECT_EQ(histogram.count, row.count);
    EXPECT_EQ(histogram.sum, row.sum);
    EXPECT_EQ(histogram.sum_of_squares, row.sum_of_squares);
    ASSERT_EQ(histogram.limits.size(), row.buckets);
    ASSERT_EQ(histogram.counts.size(), row.buckets);
    EXPECT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), 0.0), row.count);
    EXPECT_TRUE(std::is_sorted(histogram.limits.begin(), histogram.limits.end()));
    if (row.buckets > 0) {
      EXPECT_EQ(histogram.limits.back(), row.max);
    }
  }
}

TEST(Histograms, PutEachValueIntoItsBucket) {
  std::vector<float> values;
  for (int i = 0; i <= 640; ++i) values.push_back(static_cast<float>(i) / 10);
  const event::Histogram histogram = histogram_of(values);
  ASSERT_EQ(histogram.counts.size(), 64u);
  EXPECT_EQ(histogram.limits[0], 1);
  EXPECT_EQ(histogram.limits[40], 41);
  for (size_t i = 0; i < 64; ++i)
    EXPECT_NEAR(histogram.counts[i], i == 63 ? 11 : 10, 1) << i;  // a limit rounds either way
}

class HistogramEvents : public EventReader {
 public:
  void read(const Event& event) override {
    if (const auto* found = std::get_if<event::Histogram>(&event))
      sums[found->tag][found->iteration] = found->sum;
    if (const auto* found = std::get_if<event::NetGraph>(&event)) nets.push_back(*found);
  }
  std::map<std::string, std::map<int64_t, double>> sums;
  std::vector<event::NetGraph> nets;
};

// SGD subtracts rate times gradient from each weight, whose mean over iter_size batches the
// histogram shows; and reading it changes nothing.
TEST(Histograms, AreOfTheGradientsBeforeTheUpdate) {
  std::vector<float> weights[2];
  for (const bool asked : {false, true}) {
    Context context(Device::cpu);
    HistogramEvents events;
    SolverOptions options;
    options.histograms = asked ? 1 : 0;
    options.readers = {&events};
    Solver solver(
        context,
        solver_file("max_iter: 5 iter_size: 3 random_seed: 4 snapshot_after_train: false "),
        options);
    solver.solve();
    weights[asked] = parameters_of(solver);
    if (!asked) {
      EXPECT_TRUE(events.sums.empty());
      continue;
    }
    std::vector<std::string> tags;
    for (const auto& [tag, sums] : events.sums) {
      tags.push_back(tag);
      EXPECT_EQ(sums.size(), 5u);
    }
    EXPECT_EQ(tags, (std::vector<std::string>{"gradients/ip1/0", "gradients/ip1/1",
                                              "gradients/ip2/0", "gradients/ip2/1", "weights/ip1/0",
                                              "weights/ip1/1", "weights/ip2/0", "weights/ip2/1"}));
    for (const std::string blob : {"ip1/0", "ip1/1", "ip2/0", "ip2/1"}) {
      const double rate = blob == "ip1/1" ? 0.2 : 0.1;  // its lr_mult is 2
      const auto& w = events.sums["weights/" + blob];
      const auto& g = events.sums["gradients/" + blob];
      for (int i = 0; i < 3; ++i) {
        EXPECT_NE(g.at(i), 0) << blob;
        EXPECT_NEAR(w.at(i + 1), w.at(i) - rate * g.at(i), 1e-5) << blob;
      }
    }
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(Histograms, AreSentAsOftenAsAsked) {
  Context context(Device::cpu);
  HistogramEvents events;
  SolverOptions options;
  options.histograms = 3;
  options.readers = {&events};
  Solver solver(context, solver_file("max_iter: 8 snapshot_after_train: false "), options);
  solver.solve();
  std::vector<int64_t> iterations;
  for (const auto& [iteration, sum] : events.sums.at("weights/ip1/0"))
    iterations.push_back(iteration);
  EXPECT_EQ(iterations, (std::vector<int64_t>{0, 3, 6}));
}

TEST(NetGraph, NamesWhatEachLayerReads) {
  Context context(Device::cpu);
  HistogramEvents events;
  SolverOptions options;
  options.readers = {&events};
  Solver solver(context, solver_file("max_iter: 1 snapshot_after_train: false "), options);
  solver.solve();
  ASSERT_EQ(events.nets.size(), 1u);
  std::vector<std::string> lines;
  for (const event::NetGraph::Node& node : events.nets[0].nodes) {
    std::string line = node.name + " " + node.type;
    for (const auto& input : node.inputs)
      line += cat(" <", events.nets[0].nodes.at(input.node).name, ":", input.top);
    for (const auto& shape : node.shapes) {
      line += " >";
      for (const int64_t extent : shape) line += cat(extent, ",");
    }
    for (const auto& [name, text] : node.notes) {
      if (name == "parameters") line += " " + text;
      if (name == "layer") expect_part(text, "name: \"" + node.name + "\"");
    }
    lines.push_back(line);
  }
  EXPECT_EQ(lines,
            (std::vector<std::string>{
                "data DummyData >6,5, >6,3,", "ip1 InnerProduct <data:0 >6,7, 7x5, 7",
                "tanh TanH <ip1:0 >6,7,", "drop Dropout <tanh:0 >6,7,",
                "ip2 InnerProduct <drop:0 >6,3, 3x7, 3", "loss EuclideanLoss <ip2:0 <data:1 >"}));
}

}  // namespace parameter_histograms_test
}  // namespace crema::tests
