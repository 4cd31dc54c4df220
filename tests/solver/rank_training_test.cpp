// Training with several ranks: with the same batches they match one rank, whatever the update rule;
// each rank ends with the same weights; and any number of ranks can resume a snapshot.
#include <gtest/gtest.h>

#include <cmath>

#include "solver/rank_fixture.h"
#include "solver/snapshot/state_file.h"

namespace crema::tests {
namespace rank_training_test {

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
                    "momentum: 0.9 prune { kind: WEIGHTS end: 4 interval: 2 }",
                    "momentum: 0.9 freeze: \"conv\""));

// Each rank measures its own part of the batch; weights and ranges are the same in the end.
TEST_F(RankTraining, RoundsAlike) {
  for (const char* range : {"MOVING_AVERAGE", "LEARNED"})
    for (const double value : train(this->file(cat("quantize { range: ", range, " }")), 3).values)
      EXPECT_TRUE(std::isfinite(value));
}

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

// Each rank has its own batch: equivalent to one rank with a batch of both.
TEST_F(RankTraining, BatchesOfTheirOwn) {
  SolverFile file = this->file("momentum: 0.9"), larger = file;
  larger.solver.mutable_net_param()->mutable_layer(0)->mutable_data_param()->set_batch_size(24);
  const Seen one = train(larger, 1), two = train(file, 2, {}, false);
  EXPECT_EQ(one.weights.size(), two.weights.size());
  for (size_t i = 0; i < one.weights.size(); ++i) EXPECT_NEAR(one.weights[i], two.weights[i], 2e-4);
}

// 2 ranks until iteration 5, then `ranks`: the samples and the weights continue.
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

// With separate batches the position in the data is counted in samples: 5 passes of `before` ranks,
// then one of `after`.
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

// A request to only one rank reaches all, and they end in the same iteration.
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
