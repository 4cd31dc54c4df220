// Ranks that divide the optimizer's state (-shard) get the same results as ranks that each keep all
// of it, and any number of ranks can resume their snapshots.
#include "solver/ranks/shard.h"

#include <google/protobuf/text_format.h>

#include <cmath>
#include <numeric>

#include "fixtures.h"
#include "ranks.h"
#include "solver/iteration/optimizer.h"
#include "solver/snapshot/training_copy.h"
#include "staged_ranks.h"

namespace crema::tests {
namespace shard_test {

// 3 * 3 * 2 * 5, 5 (frozen), BatchNorm's statistics, 7 * 80, 7, 3 * 7, 3: parts of 2 and 3 ranks
// begin within parameters, and 3 do not divide the arena.
std::string net_of(const std::string& source) {
  return cat(R"(
    layer { name: "data" type: "Data" top: "x" top: "y" transform_param { scale: 0.01 mean_value: 128 }
      data_param { source: ")",
             source, R"(" batch_size: 12 backend: LMDB shuffle: true } }
    layer { name: "conv" type: "Convolution" bottom: "x" top: "h" convolution_param { num_output: 5 kernel_size: 3
      weight_filler { type: "xavier" } } param { lr_mult: 1 } param { lr_mult: 0 } }
    layer { name: "norm" type: "BatchNorm" bottom: "h" top: "h" }
    layer { name: "ip1" type: "InnerProduct" bottom: "h" top: "a" inner_product_param { num_output: 7
      weight_filler { type: "xavier" } } param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 } }
    layer { name: "tanh" type: "TanH" bottom: "a" top: "a" }
    layer { name: "ip2" type: "InnerProduct" bottom: "a" top: "z" inner_product_param { num_output: 3
      weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "z" bottom: "y" top: "loss" })");
}

SolverParameter solver_of(const std::string& text) {
  SolverParameter solver;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &solver));
  return solver;
}

// Training without a Solver, so that the ranks' calls are here.
class Training {
 public:
  Training(const std::string& net, const SolverParameter& solver, Communicator* world, bool shard)
      : solver_(solver), context_(Device::cpu) {
    context_.set_world(world);
    NetParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(net, &message));
    NetOptions options;
    options.state.set_phase(TRAIN);
    net_ = std::make_unique<Net>(context_, message, options);
    optimizer_ = std::make_unique<Optimizer>(solver_, *net_, shard);
  }

  void train(int64_t updates) {
    for (const int64_t end = done_ + updates; done_ < end; ++done_) {
      net_->forward(static_cast<uint64_t>(done_));
      net_->backward();
      const Tensor gradients = net_->diff_arena();
      if (optimizer_->sharded()) {
        optimizer_->reduce_gradients();
      } else if (context_.world()) {
        context_.world()->sum(context_, gradients.raw(), gradients.count(), Element::f32);
      }
      const auto clipped = optimizer_->update(0.02, done_);
      if (clipped) norms.push_back(clipped->norm);
    }
  }
  void resume(int64_t done, const SolverState& state, const std::vector<float>& weights) {
    done_ = done;
    std::copy(weights.begin(), weights.end(), net_->parameter_arena().data<float>());
    EXPECT_TRUE(optimizer_->restore(state, "state").empty());
  }

  std::vector<float> arena() {
    const Tensor arena = net_->parameter_arena();
    return {arena.data<float>(), arena.data<float>() + arena.count()};
  }
  std::vector<float> weights() {
    std::vector<float> all;
    for (const Parameter& parameter : net_->parameters()) {
      const std::vector<float> values = to_floats(context_, parameter.data);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  std::string state() const {
    SolverState state;
    optimizer_->store(&state);
    return state.SerializeAsString();
  }
  Context& context() { return context_; }
  Net& net() { return *net_; }
  Optimizer& optimizer() { return *optimizer_; }
  std::vector<double> norms;  // of clipped gradients

 private:
  const SolverParameter solver_;
  Context context_;
  std::unique_ptr<Net> net_;
  std::unique_ptr<Optimizer> optimizer_;
  int64_t done_ = 0;
};

SolverState parsed(const std::string& text) {
  SolverState state;
  EXPECT_TRUE(state.ParseFromString(text));
  return state;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i]))) << "value " << i;
}

struct Result {
  std::vector<float> weights;
  std::string state;
  std::vector<double> norms;
};

class ShardTest : public testing::Test {
 protected:
  using Work = std::function<void(Training&, Communicator&)>;

  // Each rank's result.
  std::vector<Result> train(int ranks, const std::string& solver, bool shard, int64_t updates,
                            const Work& before = {}, const Work& after = {}) {
    std::vector<Result> all(ranks);
    ThreadRanks(ranks).run([&](Communicator& world) {
      Training training(net_of(source_), solver_of(solver), &world, shard);
      EXPECT_EQ(training.optimizer().sharded(), shard);
      if (before) before(training, world);
      training.train(updates);
      if (after) after(training, world);
      all[world.rank] = {training.weights(), training.state(), training.norms};
    });
    return all;
  }

  const Folder folder_;
  const std::string source_ =
      image_database(folder_, 50, {2, 6, 6}, [](int64_t i) { return static_cast<int>(i * i % 3); });
};

class ShardedRules : public ShardTest,
                     public testing::WithParamInterface<std::pair<const char*, float>> {};

TEST_P(ShardedRules, LearnTheSame) {
  const auto [solver, tolerance] = GetParam();
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(ranks);
    const std::vector<Result> whole = train(ranks, solver, false, 20);
    const std::vector<Result> sharded = train(ranks, solver, true, 20);
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(sharded[rank].state, sharded[0].state);
      EXPECT_EQ(sharded[rank].norms, sharded[0].norms);
      if (tolerance > 0) {
        EXPECT_FALSE(sharded[rank].norms.empty());
        ASSERT_EQ(sharded[rank].norms.size(), whole[rank].norms.size());
        for (size_t i = 0; i < whole[rank].norms.size(); ++i)
          EXPECT_NEAR(sharded[rank].norms[i], whole[rank].norms[i], tolerance);
        expect_near(sharded[rank].weights, whole[rank].weights, tolerance);
      } else {  // also BatchNorm's statistics, which differ from rank to rank
        EXPECT_EQ(sharded[rank].weights, whole[rank].weights);
        EXPECT_EQ(sharded[rank].state, whole[rank].state);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ShardedRules,
    testing::Values(std::pair("momentum: 0.9 weight_decay: 0.01", 0.f),
                    std::pair("type: 'Nesterov' momentum: 0.9 regularization_type: 'L1' "
                              "weight_decay: 0.01",
                              0.f),
                    std::pair("type: 'AdaGrad'", 0.f), std::pair("type: 'RMSProp'", 0.f),
                    std::pair("type: 'AdaDelta' momentum: 0.9", 0.f),
                    std::pair("type: 'Adam' momentum: 0.9 amsgrad: true", 0.f),
                    std::pair("type: 'AdamW' momentum: 0.9 weight_decay: 0.1", 0.f),
                    std::pair("type: 'Lion' momentum: 0.9", 0.f),
                    std::pair("momentum: 0.9 ema_decay: 0.8", 0.f),
                    std::pair("momentum: 0.9 lookahead: true lookahead_steps: 3", 0.f),
                    std::pair("momentum: 0.9 clip_gradients_value: 0.01", 0.f),
                    // The norm adds up in another order.
                    std::pair("momentum: 0.9 clip_gradients: 0.2", 1e-5f),
                    std::pair("type: 'Adam' momentum: 0.9 clip_gradients: 0.2", 1e-5f)));

TEST_F(ShardTest, EachRankKeepsItsPart) {
  EXPECT_FALSE(Training(net_of(source_), solver_of(""), nullptr, true).optimizer().sharded());
  for (const int ranks : {2, 3, 5}) {
    std::vector<size_t> kept(ranks), whole(ranks);
    train(ranks, "type: 'Adam' ema_decay: 0.9", true, 1,
          [&](Training& training, Communicator& world) {
            kept[world.rank] = training.optimizer().kept_bytes();
            whole[world.rank] = training.optimizer().whole_bytes();
            EXPECT_EQ(whole[world.rank], 3 * training.net().parameter_arena().bytes());
            EXPECT_LE(kept[world.rank], whole[world.rank] / ranks + 3 * 4 * 5 * ranks);
          });
    EXPECT_EQ(std::accumulate(kept.begin(), kept.end(), size_t{0}), whole[0]);
  }
}

TEST_F(ShardTest, WeightsAndTheirAverageAreSwappedAndBack) {
  std::vector<std::vector<float>> averages(6);
  for (const bool shard : {false, true}) {
    train(3, "momentum: 0.9 ema_decay: 0.8", shard, 7, {},
          [&](Training& training, Communicator& world) {
            const std::vector<float> before = training.weights();
            training.optimizer().exchange_average();
            averages[shard * 3 + world.rank] = training.weights();
            EXPECT_NE(training.weights(), before);
            training.optimizer().exchange_average();
            EXPECT_EQ(training.weights(), before);
          });
  }
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(averages[3 + rank], averages[rank]);
}

// Without the BatchNorm, whose statistics differ between ranks, and so would the results.
TEST_F(ShardTest, SnapshotsGoOnWithAnyNumberOfRanks) {
  const std::string solver = "type: 'Adam' momentum: 0.9 ema_decay: 0.8 lookahead: true";
  std::string net = net_of(source_);
  const size_t norm = net.find("layer { name: \"norm\"");
  net.erase(norm, net.find("layer { name: \"ip1\"") - norm);
  std::vector<float> at_8, at_16;
  std::string state_at_8;
  ThreadRanks(2).run([&](Communicator& world) {
    Training training(net, solver_of(solver), &world, true);
    training.train(8);
    const std::string state = training.state();
    const std::vector<float> arena = training.arena();
    training.train(8);
    if (world.rank > 0) return;
    state_at_8 = state, at_8 = arena, at_16 = training.arena();
  });
  const auto go_on = [&](Communicator* world) {
    Training training(net, solver_of(solver), world, world != nullptr);
    training.resume(8, parsed(state_at_8), at_8);
    EXPECT_EQ(training.state(), state_at_8);
    training.train(8);
    expect_near(training.arena(), at_16, 2e-5f);
  };
  go_on(nullptr);
  for (const int ranks : {2, 3})
    ThreadRanks(ranks).run([&](Communicator& world) { go_on(&world); });
}

TEST_F(ShardTest, OneRankCopiesWhatAllKeep) {
  for (const bool average : {false, true}) {
    std::string stored, copied;
    const TrainingCopy::Parts parts = {.average = average, .state = true};
    train(3, "type: 'Adam' momentum: 0.9 ema_decay: 0.8 lookahead: true", true, 5, {},
          [&](Training& training, Communicator& world) {
            const std::string state = training.state();
            if (world.rank > 0) return TrainingCopy::help_to_take(training.optimizer(), parts);
            TrainingCopy copy;
            copy.take(training.net(), training.optimizer(), parts);
            Context host(Device::cpu);
            copied = copy.state(host, {}).SerializeAsString();
            SolverState expected = parsed(state);
            if (!average) expected.clear_average();
            stored = expected.SerializeAsString();
          });
    EXPECT_EQ(copied, stored);
  }
}

// The same with the updates that a CUDA graph records.
class ShardOnGpu : public ShardTest,
                   public testing::WithParamInterface<std::pair<const char*, Precision>> {
 protected:
  struct OfRank {
    std::vector<float> weights, halves;
    double norm = 0;
  };

  OfRank train(Communicator& world, bool shard) {
    const auto [text, precision] = GetParam();
    const SolverParameter solver = solver_of(text);
    Context context(Device::gpu);
    StagedRank staged(world);
    context.set_world(&staged);
    NetParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(net_of(source_), &message));
    NetOptions options;
    options.state.set_phase(TRAIN);
    options.precision = precision;
    Net net(context, message, options);
    Optimizer optimizer(solver, net, shard);
    constexpr int64_t kUpdates = 10;
    DeviceUpdateState start;
    for (int64_t i = 0; i < kUpdates; ++i) start.rates[i] = optimizer.hyperparameters(i, 0.02);
    const Tensor state(context, Shape{sizeof start}, DType::u8);
    copy_bytes(context, state.raw(), Device::gpu, &start, Device::cpu, sizeof start);
    const LiveUpdate live{state.data<DeviceUpdateState>(), optimizer.limits()};
    for (uint64_t pass = 0; pass < kUpdates; ++pass) {
      net.forward(pass);
      optimizer.prepare_queued();
      net.backward();
      const Tensor gradients = net.diff_arena();
      if (shard) {
        optimizer.reduce_gradients();
      } else {
        staged.sum(context, gradients.raw(), gradients.count(), Element::f32);
      }
      optimizer.queue_update(live);
    }
    copy_bytes(context, &start, Device::cpu, state.raw(), Device::gpu, sizeof start);
    EXPECT_EQ(start.updates, uint64_t{kUpdates});
    OfRank result{to_floats(context, net.parameter_arena()), {}, start.norm};
    if (net.half_arena()) result.halves = to_floats(context, net.half_arena());
    return result;
  }
};

TEST_P(ShardOnGpu, LearnsTheSame) {
  if (gpu_count() == 0) GTEST_SKIP() << gpu_problem();
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(ranks);
    std::vector<OfRank> whole(ranks), sharded(ranks);
    ThreadRanks(ranks).run([&](Communicator& world) { whole[world.rank] = train(world, false); });
    ThreadRanks(ranks).run([&](Communicator& world) { sharded[world.rank] = train(world, true); });
    for (int rank = 0; rank < ranks; ++rank) {
      const float tolerance = whole[rank].halves.empty() ? 1e-4f : 1e-3f;
      expect_near(sharded[rank].weights, whole[rank].weights, tolerance);
      EXPECT_NEAR(sharded[rank].norm, whole[rank].norm, tolerance * (1 + whole[rank].norm));
      EXPECT_EQ(sharded[rank].norm, sharded[0].norm);
      if (!whole[rank].halves.empty())
        expect_near(sharded[rank].halves, sharded[rank].weights, 1e-2f);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ShardOnGpu,
    testing::Values(std::pair("momentum: 0.9 weight_decay: 0.01", Precision::fp32),
                    std::pair("type: 'Adam' momentum: 0.9 clip_gradients: 0.2", Precision::fp32),
                    std::pair("momentum: 0.9 ema_decay: 0.8 lookahead: true", Precision::bf16),
                    std::pair("type: 'AdamW' momentum: 0.9 clip_gradients: 0.2", Precision::fp16)));

TEST(ShardErrors, TooFewParameters) {
  const std::string net =
      "layer { name: 'x' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 2 dim: 3 } } } "
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { "
      "num_output: 1 } }";
  const std::string message = error_of([&] {
    ThreadRanks(9).run([&](Communicator& world) { Training(net, solver_of(""), &world, true); });
  });
  expect_part(message, "among 9 ranks, but the net has only 32 of them");
}

TEST(ShardErrors, WhatNeedsWholeParameters) {
  const std::pair<const char*, const char*> rows[] = {
      {"type: \"LAMB\"", "solver.prototxt:1:1: type \"LAMB\" needs the norms of whole parameters"},
      {"momentum: 0.9\n type: \"Muon\"",
       "solver.prototxt:2:2: type \"Muon\" needs whole parameters"},
      {"larc: true", "solver.prototxt:1:1: larc needs the norms of whole parameters"},
      {"local_lr_auto: true", "local_lr_auto needs the norms"},
      {"clip_gradients_blob: 1", "clip_gradients_blob needs the norms"},
      {"clip_gradients_layer: 1", "clip_gradients_layer needs the norms"},
      {"grad_centralization: true", "grad_centralization needs the means of whole gradients"},
      {"snapshot_diff: true", "snapshot_diff needs all gradients"},
  };
  for (const auto& [text, expected] : rows) {
    expect_part(error_of([&] { check_sharding(parse_solver_text(text, "solver.prototxt")); }),
                expected);
  }
  check_sharding(
      parse_solver_text("type: \"AdamW\" clip_gradients: 1 ema_decay: 0.9 lookahead: "
                        "true clip_gradients_value: 1",
                        "solver.prototxt"));
}

}  // namespace shard_test
}  // namespace crema::tests
