// A small run with several ranks, for tests of its results.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "fixtures.h"
#include "ranks.h"
#include "staged_ranks.h"

namespace crema::tests {

inline constexpr int64_t kRecords = 50;

// With 12 samples per batch; `more` are further layers after "h".
inline std::string net_of(const std::string& source, const std::string& more = "") {
  return cat(R"(name: "ranks"
    layer { name: "data" type: "Data" top: "x" top: "y" transform_param { scale: 0.0078 mean_value: 128 mirror: true
      crop_size: 5 } data_param { source: ")",
             source, R"(" batch_size: 12 backend: LMDB shuffle: true } }
    layer { name: "conv" type: "Convolution" bottom: "x" top: "h" convolution_param { num_output: 4 kernel_size: 3
      weight_filler { type: "xavier" } } param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 } }
    )",
             more, R"(
    layer { name: "relu" type: "ReLU" bottom: "h" top: "h" }
    layer { name: "ip1" type: "InnerProduct" bottom: "h" top: "a" inner_product_param { num_output: 9
      weight_filler { type: "xavier" } } param { name: "w1" } param { name: "b1" } }
    layer { name: "tanh" type: "TanH" bottom: "a" top: "a" }
    layer { name: "drop" type: "Dropout" bottom: "a" top: "a" dropout_param { dropout_ratio: 0.3 } }
    layer { name: "ip2" type: "InnerProduct" bottom: "a" top: "z" inner_product_param { num_output: 3
      weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "z" bottom: "y" top: "loss" }
    layer { name: "accuracy" type: "Accuracy" bottom: "z" bottom: "y" top: "accuracy" })");
}

class Seen : public EventReader {
 public:
  void read(const Event& event) override {
    if (const auto* display = std::get_if<event::Display>(&event)) {
      values.push_back(display->loss);
      for (const OutputValue& output : display->outputs) values.push_back(output.value);
    }
    if (const auto* end = std::get_if<event::FinalLoss>(&event)) values.push_back(end->loss);
    if (const auto* epoch = std::get_if<event::Epoch>(&event)) {
      for (const OutputValue& output : epoch->train) values.push_back(output.value);
    }
    if (const auto* test = std::get_if<event::TestResult>(&event)) {
      for (const OutputValue& output : test->outputs) values.push_back(output.value);
    }
  }
  std::vector<double> values;
  std::vector<float> weights;
};

class RankTraining : public testing::Test {
 protected:
  RankTraining()
      : source_(image_database(folder_, kRecords, {2, 6, 6},
                               [](int64_t i) { return static_cast<int>(i * i % 3); })) {}

  SolverFile file(const std::string& solver, const std::string& more = "") const {
    const std::string policy = solver.find("lr_policy") == std::string::npos
                                   ? "lr_policy: \"step\" gamma: 0.5 stepsize: 5 "
                                   : "";
    const std::string rate = solver.find("base_lr") == std::string::npos ? "base_lr: 0.05 " : "";
    return parse_solver_text(
        cat("net_param {", net_of(source_, more), "}\nrandom_seed: 3 display: 2 average_loss: 2 ",
            "test_iter: 3 test_interval: 4 max_iter: 8 snapshot_after_train: false ", policy, rate,
            solver),
        "solver.prototxt");
  }

  // All ranks must end alike; returns what rank 0 has seen.
  Seen train(const SolverFile& file, int ranks, SolverOptions options = {}, bool divides = true) {
    std::vector<Seen> all(ranks);
    const auto run = [&](Communicator* world) {
      Seen& seen = all[world ? world->rank : 0];
      Context context(device_);
      std::optional<StagedRank> staged;
      if (world && device_ == Device::gpu) world = &staged.emplace(*world);
      context.set_world(world);
      if (world && world->rank % 2 == 1) context.implementation = odd_implementation_;
      SolverOptions mine = options;
      mine.readers = {&seen};
      Solver solver(context, file, mine);
      solver.solve();
      seen.weights = parameters_of(solver);
    };
    if (ranks == 1) {
      run(nullptr);
    } else {
      ThreadRanks(ranks, divides).run([&](Communicator& world) { run(&world); });
    }
    for (const Seen& seen : all) {
      EXPECT_EQ(seen.weights, all[0].weights);
      EXPECT_EQ(seen.values, all[0].values);
    }
    return all[0];
  }

  static void expect_near(const Seen& seen, const Seen& expected, double tolerance = 2e-4) {
    ASSERT_EQ(seen.values.size(), expected.values.size());
    for (size_t i = 0; i < expected.values.size(); ++i)
      EXPECT_NEAR(seen.values[i], expected.values[i],
                  tolerance * (1 + std::abs(expected.values[i])))
          << "value " << i;
    ASSERT_EQ(seen.weights.size(), expected.weights.size());
    double largest = 0;
    for (size_t i = 0; i < expected.weights.size(); ++i)
      largest = std::max<double>(largest, std::abs(seen.weights[i] - expected.weights[i]));
    EXPECT_LT(largest, tolerance);
  }

  Device device_ = Device::cpu;     // that all ranks share
  std::string odd_implementation_;  // what ranks 1, 3, ... prefer
  const Folder folder_;
  const std::string source_;
};

}  // namespace crema::tests
