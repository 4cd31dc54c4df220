// BatchNorm and BN with sync_bn: ranks that have parts of a batch, also of different sizes, against
// one that has all of it.
#include <gtest/gtest.h>

#include <cmath>

#include "device/communicator.h"
#include "layers/hand_row.h"
#include "proto/layer.pb.h"
#include "ranks.h"
#include "staged_ranks.h"
#include "support.h"

namespace crema {
namespace sync_bn_test {

using Values = std::vector<double>;

struct Case {
  const char* name;
  const char* text;
  Shape shape;
  int bottoms = 1;
  const char* fill = "normal";
  DType dtype = DType::f64;
  Order order = Order::row_major;
  double tolerance = 1e-11;
};

// A mean a thousand times the deviation: sums of squares would lose all digits of float32.
const Case kFar{.name = "MeanFarFromZero",
                .text = "type: \"BatchNorm\" batch_norm_param { sync_bn: true }",
                .shape = {7, 3, 4, 4},
                .fill = "uniform(999,1001)",
                .dtype = DType::f32,
                .tolerance = 2e-3};

const Case kCases[] = {
    {"Alone", "type: \"BatchNorm\" batch_norm_param { sync_bn: true }", {7, 3, 4, 5}},
    {"Float32",
     "type: \"BatchNorm\" batch_norm_param { sync_bn: true }",
     {7, 5, 3, 4},
     1,
     "normal",
     DType::f32,
     Order::row_major,
     1e-5},
    {"ChannelsLast",
     "type: \"BatchNorm\" batch_norm_param { sync_bn: true scale_bias: true }",
     {7, 6, 3, 3},
     1,
     "normal",
     DType::f32,
     Order::channels_last,
     1e-5},
    {"OneAxis", "type: \"BatchNorm\" batch_norm_param { sync_bn: true }", {7}},
    {"TwoAxes", "type: \"BatchNorm\" batch_norm_param { sync_bn: true scale_bias: true }", {7, 6}},
    {"Relu",
     "type: \"BatchNorm+Scale+ReLU\" batch_norm_param { sync_bn: true } scale_param { bias_term: "
     "true } relu_param { negative_slope: 0.1 }",
     {7, 3, 4, 5}},
    {"SumRelu",
     "type: \"BatchNorm+Scale+Sum+ReLU\" batch_norm_param { sync_bn: true } scale_param { "
     "bias_term: true }",
     {7, 3, 4, 5},
     2},
    {"Pair",
     "type: \"BatchNorm+Scale+BatchNorm+Scale+Sum+ReLU\" batch_norm_param { sync_bn: true } "
     "scale_param { bias_term: true }",
     {7, 4, 3, 5},
     2},
    {"Pooling",
     "type: \"BatchNorm+ReLU+Pooling\" batch_norm_param { sync_bn: true scale_bias: true } "
     "pooling_param { kernel_size: 2 stride: 2 }",
     {7, 3, 4, 6},
     1,
     "spaced"},
    {"Gelu",
     "type: \"BatchNorm+Scale+GELU\" batch_norm_param { sync_bn: true } scale_param { bias_term: "
     "true }",
     {7, 3, 4, 5}},
    {"Bn", "type: \"BN\" bn_param { sync_bn: true }", {7, 3, 4, 5}},
    {"BnRelu", "type: \"BN+ReLU\" bn_param { sync_bn: true momentum: 0.7 }", {7, 3, 4, 5}},
    {"BnOfSegNet", "type: \"BN\" bn_param { sync_bn: true bn_mode: LEARN }", {7, 3, 4, 5}},
    kFar,
};

// The samples of a share.
Values part_of(const Values& all, const BatchShare& share) {
  const auto each = static_cast<int64_t>(all.size()) / share.all;
  return {all.begin() + share.first * each, all.begin() + (share.first + share.count) * each};
}

// Within `tolerance` of the largest magnitude, or of 1.
void expect_close(const Values& want, const Values& got, double tolerance) {
  double largest = 1;
  for (const double value : want) largest = std::max(largest, std::abs(value));
  expect_values(want, got, tolerance * largest);
}

Row row_of_share(const Case& c, int64_t samples) {
  Shape shape = c.shape;
  shape[0] = samples;
  return row_of(c.text, std::vector<RowBottom>(c.bottoms, {shape, c.fill}));
}

Setting setting_of(const Case& c) {
  Setting setting;
  setting.dtype = c.dtype;
  setting.order = c.order;
  return setting;
}

Outcome run_part(const Case& c, Setting setting, Communicator& world, const Start& whole) {
  const BatchShare share = world.share_of(c.shape[0]);
  setting.context = std::make_shared<Context>(setting.device);
  StagedRank on_gpu(world);
  setting.context->set_world(setting.device == Device::gpu ? &on_gpu : &world);
  const Row row = row_of_share(c, share.count);
  LayerRun run(row, setting);
  Start start = whole;
  for (Values& values : start.bottom) values = part_of(values, share);
  for (Values& values : start.top_diff) values = part_of(values, share);
  Outcome outcome = run.backward(start, 2);
  EXPECT_EQ(run.broken_guard(), "");
  return outcome;
}

void expect_like_the_whole(const Case& c, const Setting& setting) {
  SCOPED_TRACE(setting.str());
  const int64_t batch = c.shape[0];
  const Row row = row_of_share(c, batch);
  LayerRun one(row, setting);
  const Start start = one.make_start();
  const Outcome whole = one.backward(start, 2);
  for (const int ranks : {2, 3, 7}) {
    SCOPED_TRACE(ranks);
    std::vector<Outcome> parts(ranks);
    ThreadRanks(ranks).run(
        [&](Communicator& world) { parts[world.rank] = run_part(c, setting, world, start); });
    std::vector<Values> sums(whole.parameter_diff.size());
    for (int rank = 0; rank < ranks; ++rank) {
      OnlyRank world(rank, ranks);
      world.divides_batches = true;
      const BatchShare share = world.share_of(batch);
      const Outcome& part = parts[rank];
      expect_close(part_of(whole.top[0], share), part.top[0], c.tolerance);
      for (int i = 0; i < c.bottoms; ++i)
        expect_close(part_of(whole.bottom_diff[i], share), part.bottom_diff[i], c.tolerance);
      // The stored statistics: those of the whole batch, and the same bits on each rank.
      EXPECT_EQ(part.parameter, parts[0].parameter);
      for (size_t i = 0; i < sums.size(); ++i) {
        expect_close(whole.parameter[i], part.parameter[i], c.tolerance);
        sums[i].resize(part.parameter_diff[i].size());
        for (size_t k = 0; k < sums[i].size(); ++k) sums[i][k] += part.parameter_diff[i][k];
      }
    }
    for (size_t i = 0; i < sums.size(); ++i)
      expect_close(whole.parameter_diff[i], sums[i], c.tolerance);
  }
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) { return info.param.name; }

class SyncBn : public testing::TestWithParam<Case> {};

TEST_P(SyncBn, PartsOfABatchAreLikeTheWhole) {
  expect_like_the_whole(GetParam(), setting_of(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, SyncBn, testing::ValuesIn(kCases), name_of_case);

// Whole packs of 16 bytes in float32 and in 16 bits, and none.
const Case kGpuCases[] = {
    {"Alone", "type: \"BatchNorm\" batch_norm_param { sync_bn: true }", {7, 16, 4, 5}},
    {"OddChannels",
     "type: \"BatchNorm\" batch_norm_param { sync_bn: true scale_bias: true }",
     {7, 5, 4, 3}},
    {"Scale",
     "type: \"BatchNorm+Scale\" batch_norm_param { sync_bn: true } scale_param { bias_term: true }",
     {7, 24, 3, 4}},
    {"Relu",
     "type: \"BatchNorm+Scale+ReLU\" batch_norm_param { sync_bn: true } scale_param { bias_term: "
     "true }",
     {7, 16, 4, 5}},
    {"SumRelu",
     "type: \"BatchNorm+Scale+Sum+ReLU\" batch_norm_param { sync_bn: true } scale_param { "
     "bias_term: true }",
     {7, 16, 4, 5},
     2},
    {"Pair",
     "type: \"BatchNorm+Scale+BatchNorm+Scale+Sum+ReLU\" batch_norm_param { sync_bn: true } "
     "scale_param { bias_term: true }",
     {7, 16, 3, 5},
     2},
    {"Pooling",
     "type: \"BatchNorm+ReLU+Pooling\" batch_norm_param { sync_bn: true scale_bias: true } "
     "pooling_param { kernel_size: 3 stride: 2 }",
     {7, 16, 7, 9},
     1,
     "spaced"},
    {"Gelu",
     "type: \"BatchNorm+Scale+GELU\" batch_norm_param { sync_bn: true } scale_param { bias_term: "
     "true }",
     {7, 16, 4, 5}},
    {"Bn", "type: \"BN\" bn_param { sync_bn: true }", {7, 16, 4, 5}},
};

class SyncBnOnGpu : public testing::TestWithParam<Case> {};

TEST_P(SyncBnOnGpu, PartsOfABatchAreLikeTheWhole) {
  if (gpu_count() == 0) GTEST_SKIP() << gpu_problem();
  Case c = GetParam();
  Setting setting;
  setting.device = Device::gpu;
  setting.implementation = "";
  setting.dtype = c.dtype = DType::f64;
  c.tolerance = 1e-11;
  expect_like_the_whole(c, setting);
  setting.dtype = c.dtype = DType::f32;
  c.tolerance = 2e-5;
  expect_like_the_whole(c, setting);
  setting.order = Order::channels_last;
  for (const bool parts : {false, true}) {
    setting.parts = parts;
    for (const auto& [precision, tolerance] :
         {std::pair(Precision::tf32, 2e-5), std::pair(Precision::fp16, 2e-3),
          std::pair(Precision::bf16, 1.6e-2)}) {
      setting.precision = precision;
      c.tolerance = tolerance;
      expect_like_the_whole(c, setting);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SyncBnOnGpu, testing::ValuesIn(kGpuCases), name_of_case);

// If nothing of the other ranks is needed, no exchange happens: OnlyRank would throw.
struct Quiet {
  const char* name;
  const char* text;
  bool training;
};

class QuietBn : public testing::TestWithParam<Quiet> {};

TEST_P(QuietBn, AsksNoOtherRank) {
  Row row = row_of(GetParam().text, {{{4, 3, 2, 2}}});
  row.training = GetParam().training;
  LayerRun one(row, {});
  const Start start = one.make_start();
  const Outcome expected = one.backward(start);
  OnlyRank world(1, 2);
  Setting setting;
  setting.context = std::make_shared<Context>(Device::cpu);
  setting.context->set_world(&world);
  LayerRun run(row, setting);
  const Outcome outcome = run.backward(start);
  EXPECT_EQ(outcome.top, expected.top);
  EXPECT_EQ(outcome.bottom_diff, expected.bottom_diff);
  EXPECT_EQ(outcome.parameter, expected.parameter);
}

INSTANTIATE_TEST_SUITE_P(
    All, QuietBn,
    testing::Values(
        Quiet{"WithoutSyncBn", "type: \"BatchNorm\"", true},
        Quiet{"InTesting", "type: \"BatchNorm\" batch_norm_param { sync_bn: true }", false},
        Quiet{"BatchStatisticsInTesting",
              "type: \"BatchNorm\" batch_norm_param { sync_bn: true use_global_stats: false }",
              false},
        Quiet{"StoredStatistics",
              "type: \"BatchNorm\" batch_norm_param { sync_bn: true use_global_stats: true }",
              true},
        Quiet{"FrozenBn", "type: \"BN\" bn_param { sync_bn: true frozen: true }", true}),
    [](const auto& info) { return info.param.name; });

// With ranks, no other layer may compute the statistics.
TEST(SyncBnEdges, OffersNoStatisticsOfItsOwnBatch) {
  const Row row =
      row_of("type: \"BatchNorm+Scale+ReLU\" batch_norm_param { sync_bn: true }", {{{4, 3, 2, 2}}});
  const auto edges = [&](int ranks) {
    OnlyRank world(0, ranks);
    Setting setting;
    setting.context = std::make_shared<Context>(Device::cpu);
    setting.context->set_world(&world);
    LayerRun run(row, setting);
    return std::make_pair(run.layer().bottom_edge(0).statistics, run.layer().top_edge().affine);
  };
  EXPECT_EQ(edges(1), std::make_pair(true, true));
  EXPECT_EQ(edges(2), std::make_pair(false, false));
}

}  // namespace sync_bn_test
}  // namespace crema
