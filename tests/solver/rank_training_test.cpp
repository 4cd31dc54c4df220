// Trainings by several ranks: with the same batches they go the way of one rank, whatever the update
// rule; each rank ends with the same weights; and snapshots go on with any number of ranks.
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures.h"
#include "ranks.h"
#include "solver/state_file.h"

namespace crema::tests {
namespace rank_training_test {

constexpr int64_t kRecords = 50;

// Of 12 samples a batch; `more` are further layers behind "h".
std::string net_of(const std::string& source, const std::string& more = "") {
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
      Context context(Device::cpu);
      context.set_world(world);
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

  const Folder folder_;
  const std::string source_;
};

class RankRules : public RankTraining, public testing::WithParamInterface<const char*> {};

TEST_P(RankRules, GoTheWayOfOneRank) {
  const SolverFile file = this->file(GetParam());
  const Seen one = train(file, 1);
  for (const int ranks : {2, 3, 5}) {
    SCOPED_TRACE(ranks);
    const Seen several = train(file, ranks);
    expect_near(several, one);
    const Seen again = train(file, ranks);
    EXPECT_EQ(again.values, several.values);  // the same bits
    EXPECT_EQ(again.weights, several.weights);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RankRules,
    testing::Values("type: \"SGD\" momentum: 0.9 weight_decay: 0.001",
                    "type: \"Nesterov\" momentum: 0.9", "type: \"AdaGrad\"",
                    "type: \"RMSProp\" base_lr: 0.01", "type: \"AdaDelta\" momentum: 0.9",
                    "type: \"Adam\" momentum: 0.9 base_lr: 0.005",
                    "type: \"AdamW\" base_lr: 0.005 clip_gradients: 0.3",
                    "momentum: 0.9 grad_centralization: true lookahead: true ema_decay: 0.8",
                    "type: \"LAMB\"", "type: \"Lion\" base_lr: 0.0005",
                    "type: \"Muon\" base_lr: 0.01",
                    "momentum: 0.9 larc: true larc_policy: \"clip\" larc_eta: 0.1",
                    "momentum: 0.9 local_lr_auto: true", "momentum: 0.9 iter_size: 2",
                    "momentum: 0.9 iter_size: 3 clip_gradients: 0.5 epoch_log: true",
                    "lr_policy: \"plateau\" gamma: 0.5 plateau_winsize: 1 plateau_winsize: 2",
                    "momentum: 0.9 freeze: \"conv\""));

TEST_F(RankTraining, LayersThatShareParameters) {
  const std::string shared = R"(
    layer { name: "ip0" type: "Convolution" bottom: "x" top: "g" convolution_param { num_output: 4 kernel_size: 3
      weight_filler { type: "xavier" } } param { name: "c" } param { name: "d" } }
    layer { name: "ip00" type: "Convolution" bottom: "x" top: "f" convolution_param { num_output: 4 kernel_size: 3
      weight_filler { type: "xavier" } } param { name: "c" } param { name: "d" } }
    layer { name: "add" type: "Eltwise" bottom: "h" bottom: "g" bottom: "f" top: "s" }
    layer { name: "back" type: "Eltwise" bottom: "s" bottom: "h" top: "h2" }
    layer { name: "silence" type: "Silence" bottom: "h2" })";
  const SolverFile file = this->file("momentum: 0.9", shared);
  const Seen one = train(file, 1);
  expect_near(train(file, 2), one);
  expect_near(train(file, 3), one);
}

// Sums over samples are added up, means weighted.
TEST_F(RankTraining, LossesThatAreSums) {
  SolverFile file = this->file("base_lr: 0.004 momentum: 0.9");
  LayerParameter& loss = *file.solver.mutable_net_param()->mutable_layer(7);
  ASSERT_EQ(loss.name(), "loss");
  loss.mutable_loss_param()->set_normalization(LossParameter::NONE);
  const Seen one = train(file, 1);
  expect_near(train(file, 2), one);
  expect_near(train(file, 5), one);
}

TEST_F(RankTraining, SynchronizedBatchNorm) {
  const SolverFile file =
      this->file("momentum: 0.9", R"(layer { name: "bn" type: "BatchNorm" bottom: "h" top: "h"
        batch_norm_param { sync_bn: true moving_average_fraction: 0.9 } }
        layer { name: "scale" type: "Scale" bottom: "h" top: "h" scale_param { bias_term: true } })");
  const Seen one = train(file, 1);
  expect_near(train(file, 2), one);
  expect_near(train(file, 3), one);
}

// Statistics of each rank's own part: another training than that of one rank, but all ranks keep the
// same statistics, which tests and snapshots have.
TEST_F(RankTraining, LocalBatchNorm) {
  const SolverFile file =
      this->file("momentum: 0.9", R"(layer { name: "bn" type: "BatchNorm" bottom: "h" top: "h"
        batch_norm_param { moving_average_fraction: 0.9 } })");
  const Seen several = train(file, 2);
  for (const double value : several.values) EXPECT_TRUE(std::isfinite(value));
}

// Each rank has a batch of its own: as one rank with a batch of both.
TEST_F(RankTraining, BatchesOfTheirOwn) {
  SolverFile file = this->file("momentum: 0.9"), larger = file;
  larger.solver.mutable_net_param()->mutable_layer(0)->mutable_data_param()->set_batch_size(24);
  const Seen one = train(larger, 1), two = train(file, 2, {}, false);
  EXPECT_EQ(one.weights.size(), two.weights.size());
  for (size_t i = 0; i < one.weights.size(); ++i) EXPECT_NEAR(one.weights[i], two.weights[i], 2e-4);
}

// 2 ranks until iteration 5, then `ranks`: the samples and the weights go on.
TEST_F(RankTraining, ASnapshotGoesOnWithAnyNumberOfRanks) {
  const std::string more =
      cat("momentum: 0.9 snapshot: 5 snapshot_prefix: \"", folder_.file("net"), "\"");
  const SolverFile file = this->file(more);
  const Seen one = train(file, 1), whole = train(file, 2);
  SolverOptions options;
  options.snapshot = folder_.file("net_iter_5.solverstate");
  for (const int ranks : {1, 2, 3}) {
    SCOPED_TRACE(ranks);
    const Seen resumed = train(file, ranks, options);
    if (ranks == 2) {
      EXPECT_EQ(resumed.weights, whole.weights);
    }
    for (size_t i = 0; i < one.weights.size(); ++i)
      EXPECT_NEAR(resumed.weights[i], one.weights[i], 2e-4);
  }
}

// With batches of their own the position in the data is counted in samples: 5 passes of `before`
// ranks, then one of `after`.
TEST_F(RankTraining, TheDataGoOnWithAnotherNumberOfRanks) {
  struct Row {
    int before, after;
    int64_t passes, samples_before;
  };
  for (const Row& row : {Row{2, 3, 3 + 1, 12}, Row{2, 1, 10 + 1, 0}, Row{1, 2, 2 + 1, 12},
                         Row{3, 3, 5 + 1, 0}, Row{3, 2, 7 + 1, 12}}) {
    SCOPED_TRACE(cat(row.before, " ranks, then ", row.after));
    const std::string more = cat("snapshot: 5 snapshot_prefix: \"", folder_.file("net"), "\"");
    train(file(more), row.before, {}, false);
    SolverOptions options;
    options.snapshot = folder_.file("net_iter_5.solverstate");
    SolverFile longer = file(more);
    longer.solver.set_max_iter(6);
    longer.solver.set_snapshot(1);
    train(longer, row.after, options, false);
    const SolverState state = read_solver_state(folder_.file("net_iter_6.solverstate"));
    EXPECT_EQ(state.train_passes(), static_cast<uint64_t>(row.passes));
    EXPECT_EQ(state.samples_before(), row.samples_before);
  }
}

TEST_F(RankTraining, RanksThatDifferAreNamed) {
  const SolverFile file = this->file("momentum: 0.9");
  const auto error = [&](const std::function<void(int rank, SolverFile&, SolverOptions&)>& change) {
    return error_of([&] {
      ThreadRanks(2).run([&](Communicator& world) {
        Context context(Device::cpu);
        context.set_world(&world);
        SolverFile mine = file;
        SolverOptions options;
        change(world.rank, mine, options);
        Solver(context, mine, options).solve();
      });
    });
  };
  expect_part(error([](int rank, SolverFile& mine, SolverOptions&) {
                if (rank == 1) mine.solver.set_momentum(0.8f);
              }),
              "has another solver than rank 0");
  const std::string other_net = error([](int rank, SolverFile& mine, SolverOptions&) {
    if (rank == 1) mine.solver.mutable_net_param()->mutable_layer(1)->set_name("other");
  });
  expect_part(other_net, "rank 1 on ");
  expect_part(other_net, "has another net than rank 0");
  const Folder folder;
  const std::string other_data =
      image_database(folder, kRecords, {2, 6, 6}, [](int64_t) { return 2; });
  expect_part(
      error([&](int rank, SolverFile& mine, SolverOptions&) {
        if (rank == 1)
          mine.solver.mutable_net_param()->mutable_layer(0)->mutable_data_param()->set_source(
              other_data);
      }),
      "rank 1");
}

// A request that only one rank has got reaches all, and they end in the same iteration.
TEST_F(RankTraining, ARequestOfOneRankIsObeyedByAll) {
  SolverFile file = this->file(cat("snapshot_prefix: \"", folder_.file("stop"), "\""));
  file.solver.set_max_iter(100000);
  std::vector<int64_t> ends(3);
  ThreadRanks(3).run([&](Communicator& world) {
    Context context(Device::cpu);
    context.set_world(&world);
    SolverOptions options;
    int asked = 0;
    options.action = [&, rank = world.rank] {
      return rank == 2 && ++asked == 3 ? Action::snapshot_stop : Action::none;
    };
    Solver solver(context, file, options);
    solver.solve();
    EXPECT_TRUE(solver.stopped());
    ends[world.rank] = solver.iteration();
  });
  EXPECT_LT(ends[0], 100000);
  EXPECT_EQ(ends, std::vector<int64_t>(3, ends[0]));
  EXPECT_TRUE(file_exists(snapshot_files(file.solver, ends[0]).state));
}

TEST_F(RankTraining, FewerSamplesThanRanks) {
  expect_part(error_of([&] { train(file(""), 13); }),
              "a batch of 12 cannot be divided among 13 ranks");
}

TEST_F(RankTraining, AfterADivergenceAllGoBack) {
  SolverFile file = this->file(
      "base_lr: 1e30 on_divergence: ROLLBACK rollback_factor: 1e-4 "
      "rollback_most: 9");
  const Seen one = train(file, 1), two = train(file, 2);
  EXPECT_EQ(one.values.size(), two.values.size());
}

}  // namespace rank_training_test
}  // namespace crema::tests
