// Layers that remember vectors from one pass to the next.
#include <gtest/gtest.h>

#include <cmath>

#include "layers/hand_row.h"

namespace crema {
namespace memory_test {

TEST(Memory, LabeledMatchingMovesRowsVectorAfterVector) {
  const Row row =
      row_of("type: \"LabeledMatching\" labeled_matching_param { num_classes: 3 momentum: 0.25 }",
             {{{4, 2}}, {{4}}});
  LayerRun run(row, {});
  Start start = run.make_start();
  start.bottom = {{1, 2, 4, 8, -1, 1, 9, 9}, {2, 0, 2, 3}};
  start.parameter = {{10, 20, 30, 40, 50, 60}, {5, 6, 7}};
  const Outcome outcome = run.backward(start);
  expect_values({50, 110, 170, 200, 440, 680, 10, 10, 10, 270, 630, 990}, outcome.top[0]);
  expect_values({2, 0, 2, -1}, outcome.top[1]);
  // Row 2: 0.25 (0.25 (50, 60) + 0.75 (1, 2)) + 0.75 (-1, 1).
  expect_values({5.5, 11, 30, 40, 2.5625, 4.875}, outcome.parameter_after[0]);
  expect_values({0, 7, 0}, outcome.parameter_after[1]);
}

TEST(Memory, LabeledMatchingStaysWithoutARate) {
  const Row row = row_of(
      "type: \"LabeledMatching\" param { lr_mult: 0 } labeled_matching_param { num_classes: 3 }",
      {{{4, 2}}, {{4}}});
  LayerRun run(row, {});
  const Outcome outcome = run.backward(run.make_start());
  expect_values(outcome.parameter[0], outcome.parameter_after[0]);
  expect_values(outcome.parameter[1], outcome.parameter_after[1]);
}

TEST(Memory, UnlabeledMatchingFillsAQueue) {
  const Row row = row_of("type: \"UnlabeledMatching\" unlabeled_matching_param { queue_size: 3 }",
                         {{{4, 1}}, {{4}}});
  LayerRun run(row, {});
  Start start = run.make_start();
  start.bottom = {{1, 2, 3, 4}, {-1, 5, -1, 0}};
  start.parameter = {{10, 20, 30}, {2}};
  Outcome outcome = run.backward(start);
  expect_values({3, 20, 1}, outcome.parameter_after[0]);
  expect_values({1}, outcome.parameter_after[1]);
  // More than it can store: the last one replaces the first.
  start.bottom[1] = {-1, -1, -1, -1};
  outcome = run.backward(start);
  expect_values({2, 3, 4}, outcome.parameter_after[0]);
  expect_values({0}, outcome.parameter_after[1]);
  // A file may say anything of the row that is next.
  start.bottom[1] = {-1, 5, 5, 5};
  for (const double next : {-7., 3., 1e30, static_cast<double>(NAN)}) {
    start.parameter[1] = {next};
    outcome = run.backward(start);
    expect_values({1, 20, 30}, outcome.parameter_after[0]);
    expect_values({1}, outcome.parameter_after[1]);
  }
}

TEST(Memory, CenterLossMovesItsCentresWhereNoSolverDoes) {
  const Row row = row_of(
      "type: \"CenterLoss\" center_loss_param { cluster_num: 2 alpha: 0.5 loss_weight: 0.125 }",
      {{{3, 2}}, {{3}}});
  LayerRun run(row, {});
  Start start = run.make_start();
  start.bottom = {{1, 2, 3, 4, 5, 6}, {0, 0, 1}};
  start.parameter = {{0, 0, 1, 1}};
  const Outcome outcome = run.backward(start);
  expect_values({71 * 0.125 / 6}, outcome.top[0]);
  expect_values({0.25 / 3, 0.125, 1.125, 1.15625}, outcome.parameter_after[0]);
}

TEST(Memory, GlobalLseMarginFollowsTheBatches) {
  const Row row =
      row_of("type: \"GlobalLSEMargin\" top: \"y\" top: \"statistics\"", {{{2, 2}}, {{2}}});
  LayerRun run(row, {});
  Start start = run.make_start();
  start.bottom = {{0.5, 0.2, 0.1, 0.3}, {0, 1}};
  start.parameter = {{10}, {0}};
  Outcome outcome = run.backward(start);
  expect_values({2.5, 2, 1, 0.5}, outcome.top[0]);
  expect_values({10, 0.4, 0.15, 0.15, 0.25}, outcome.top[1]);
  expect_values({0.25}, outcome.parameter_after[1]);
  start.parameter = {{10}, {0.5}};
  outcome = run.backward(start);
  expect_values({0.475}, outcome.parameter_after[1]);
}

// The pass of a LayerRun has number 3.
TEST(Memory, KnnRemembersBatchesInTurns) {
  const Row row =
      row_of("type: \"Knn\" knn_param { num_output: 3 max_stored_batches: 2 }", {{{2, 1}}, {{2}}});
  Setting setting;
  setting.backward = false;
  LayerRun run(row, setting);
  Start start = run.make_start();
  start.bottom = {{1, 2}, {7, 8}};
  start.parameter = {{0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}};
  const Outcome outcome = run.forward(start);
  expect_values({2}, outcome.parameter[0]);
  expect_values({0, 0}, outcome.parameter[1]);
  expect_values({1, 2}, outcome.parameter[3]);
  expect_values({7, 8}, outcome.parameter[4]);
}

// Mean distances over the two nearest of each class.
TEST(Memory, KnnFindsTheNearestClass) {
  Row row = row_of("type: \"Knn\" knn_param { num_output: 4 k: 2 max_stored_batches: 3 }",
                   {{{3, 2}}, {{3}}});
  row.training = false;
  Setting setting;
  setting.backward = false;
  LayerRun run(row, setting);
  Start start = run.make_start();
  start.bottom = {{0, 0, 3, 4, 100, 0}, {0, 0, 0}};
  start.parameter = {{2},       {3, 4, 6, 8, 30, 40}, {9, 5, 5}, {3, 0, 0, 1, 0, 3},
                     {5, 5, 2}, {9, 9, 9, 9, 9, 9},   {2, 2, 2}};
  const Outcome outcome = run.forward(start);
  // At the origin: class 2 at 3, class 5 at 1 and 3, class 9 at 5.
  expect_values({1 - 1.0 / 3, 1, 0, 0}, {outcome.top[0].begin(), outcome.top[0].begin() + 4});
  // At (3, 4): class 2 at sqrt(10), class 5 at 4 and sqrt(18), class 9 at 0.
  const double far = (4 + std::sqrt(18.0)) / 2;
  expect_values({1 - std::sqrt(10.0) / far, 0, 1, 0},
                {outcome.top[0].begin() + 4, outcome.top[0].begin() + 8});
}

TEST(Memory, KnnOfMoreClassesThanOutputs) {
  Row row =
      row_of("type: \"Knn\" knn_param { num_output: 1 max_stored_batches: 1 }", {{{2, 1}}, {{2}}});
  row.training = false;
  Setting setting;
  setting.backward = false;
  LayerRun run(row, setting);
  Start start = run.make_start();
  start.parameter = {{1}, {0, 1}, {0, 1}};
  EXPECT_THROW(run.forward(start), Error);
}

// M is 2 vectors here, so the mean of label 1 moves by 1/2 from the third vector on.
TEST(Memory, DecodeMovesTheMeansOfLabels) {
  const Row row = row_of(
      "type: \"Decode\" top: \"d\" top: \"c\" "
      "decode_param { label_count: 3 cache_size: 1 centroid_output_iteration: 3 }",
      {{{2, 2}}, {{2, 2}}});
  Setting setting;
  setting.backward = false;
  LayerRun run(row, setting);
  Start start = run.make_start();
  start.bottom = {{6, 8, 2, 4}, {1, 0, 1, 2}};
  start.parameter = {{7, 7, 10, 20, 9, 9}, {0, 0, 0}, {0, 1, 0}};
  const Outcome outcome = run.forward(start);
  // (10, 20) -> (8, 14) -> (5, 9); labels 0 and 2 were not seen.
  expect_values({7, 7, 5, 9, 9, 9}, outcome.parameter[0]);
  expect_values({0, 1, 0}, outcome.parameter[1]);
  expect_values({0, 3, 0}, outcome.parameter[2]);
  EXPECT_GT(outcome.top[0][0], 1e38);
  EXPECT_NEAR(outcome.top[0][1], 2, 1e-9);
  EXPECT_GT(outcome.top[0][2], 1e38);
  EXPECT_NEAR(outcome.top[0][4], 34, 1e-9);
  // All that were seen are complete, and the pass, of number 3, is late enough.
  expect_values({7, 7, 5, 9, 9, 9}, outcome.top[1]);
}

TEST(Memory, DecodeShowsNoMeansThatAreNotComplete) {
  const Row row = row_of(
      "type: \"Decode\" top: \"d\" top: \"c\" "
      "decode_param { label_count: 2 centroid_output_iteration: 0 }",
      {{{1, 2}}, {{1}}});
  Setting setting;
  setting.backward = false;
  LayerRun run(row, setting);
  Start start = run.make_start();
  start.bottom = {{6, 8}, {0}};
  start.parameter = {{0, 0, 0, 0}, {0, 0}, {0, 0}};
  const Outcome outcome = run.forward(start);
  expect_values({6, 8, 0, 0}, outcome.parameter[0]);
  expect_values({0, 0, 0, 0}, outcome.top[1]);
}

// Means (0, 0) and (8, 0); of the vectors of label 1 the second is nearer to label 0's.
TEST(Memory, AccuracyEncodingComparesWithTheMeans) {
  Row row = row_of("type: \"AccuracyEncoding\" decode_param { label_count: 3 cache_size: 100 }",
                   {{{3, 2}}, {{3, 2}}});
  row.training = false;
  Setting setting;
  setting.backward = false;
  LayerRun run(row, setting);
  Start start = run.make_start();
  start.bottom = {{0, 0, 14, 0, 2, 0}, {0, 1, 1, 0, 1, 0}};
  start.parameter = {{5, 5, 5, 5, 5, 5}, {0, 0, 0}, {0, 0, 0}};
  const Outcome outcome = run.forward(start);
  expect_values({0, 0, 8, 0, 5, 5}, outcome.parameter[0]);
  EXPECT_NEAR(outcome.top[0][0], 2.0 / 3, 1e-7);
}

}  // namespace memory_test
}  // namespace crema
