// Layers whose gradients are not the derivatives of their results: values worked out by hand.
#include <gtest/gtest.h>

#include "layers/hand_row.h"

namespace crema {
namespace own_gradients_test {

// Used for values that are given here with six or seven digits.
constexpr double kFewDigits = 1e-5;

TEST(OwnGradients, CentresMoveToTheMeanOfTheirVectorsAndThemselves) {
  const Row row =
      row_of("type: \"CenterLoss\" loss_weight: 0.5 center_loss_param { num_output: 3 }",
             {{{3, 2}}, {{3}}});
  LayerRun run(row, {});
  Start start = run.make_start();
  start.bottom = {{1, 2, 3, 4, 5, 6}, {2, 0, 2}};
  start.parameter = {{0, 0, 9, 9, 1, 1}};
  start.top_diff = {{0.5}};
  const Outcome outcome = run.backward(start);
  expect_values({-1.5, -2, 0, 0, -4.0 / 3, -2}, outcome.parameter_diff[0]);
  expect_values({0, 1.0 / 6, 0.5, 4.0 / 6, 4.0 / 6, 5.0 / 6}, outcome.bottom_diff[0]);
}

TEST(OwnGradients, TheStepOfALabelledAngleHasTheSameLengthEverywhere) {
  const Row row = row_of(
      "type: \"MarginInnerProduct\" margin_inner_product_param { num_output: 2 type: DOUBLE base: "
      "0 }",
      {{{1, 2}}, {{1}}});
  LayerRun run(row, {});
  Start start = run.make_start();
  start.bottom = {{3, 4}, {0}};
  start.parameter = {{2, 0, 0, 5}};
  start.top_diff = {{1, 0.5}};
  const Outcome outcome = run.backward(start);
  expect_values({1, 0, 0, 1}, outcome.parameter[0], kFewDigits);
  expect_values({-1.4, 4}, outcome.top[0], kFewDigits);
  expect_values({3, 4, 1.5, 2}, outcome.parameter_diff[0], kFewDigits);
  // (2.4 w - 0.344 x) / sqrt(2.4^2 + 0.344^2) of the label, half of the other row.
  expect_values({0.5642323, -0.5675331 + 0.5}, outcome.bottom_diff[0], kFewDigits);
}

TEST(OwnGradients, Yolov3PullsTheBoxOfAnObject) {
  const Row row = row_of(
      "type: \"Yolov3\" yolov3_param { num: 1 num_class: 2 biases: 32 biases: 32 mask: 0 thresh: "
      "0.6 "
      "coord_scale: 1 }",
      {{{1, 7, 1, 1}}, {{1, 10}}});
  LayerRun run(row, {});
  Start start = run.make_start();
  start.bottom = {{0, 0, 0, 0, 0, 0, 0}, {1, 0.75, 0.5, 0.5, 0.5, 0, 0, 0, 0, 0}};
  start.top_diff = {{2}};
  const Outcome outcome = run.backward(start);
  const double size = 1.75 * 0.693147181;
  expect_values({-0.875, 0, 2 * size, 2 * size, -1, 1, -1}, outcome.bottom_diff[0], kFewDigits);
}

// The top's second number is a part of the first: its gradient does not count again. The box's
// shift of 3 is outside of its limits, 1/2, and of the slope's, 1.
TEST(OwnGradients, DetectionLossGivesThatOfItsFirstNumber) {
  const Row row = row_of(
      "type: \"DetectionLoss\" detection_loss_param { cls_num: 2 lambda: 2 field_h: 40 field_w: 40 "
      "downsample_rate: 8 }",
      {{{1, 6, 1, 1}}, {{1, 6, 1, 1}}});
  LayerRun run(row, {});
  Start start = run.make_start();
  start.bottom = {{0, 0, 3, -0.25, 0, 0}, {1, 4, 4, 40, 40, 1}};
  start.top_diff = {{3, 100}};
  const Outcome outcome = run.backward(start);
  expect_values({1.5, -1.5, 0.75, -0.375, 0, 0}, outcome.bottom_diff[0]);
}

// Two objects with separate anchors: p's gradient has neither lambda_conf nor the number of
// objects, c is drawn to its overlap as positive and as negative for the other object.
TEST(OwnGradients, SqueezeDetLossPullsTheAnchorsOfObjects) {
  const Row row = row_of(
      "type: \"SqueezeDetLoss\" transform_param { crop_size: 100 } squeezedet_param { classes: 2 "
      "anchors_per_grid: 3 anchor_shapes: [40, 20, 20, 40, 10, 10] pos_conf: 2 neg_conf: 3 "
      "lambda_bbox: 4 lambda_conf: 7 }",
      {{{1, 3, 2}}, {{1, 1, 1, 3}}, {{1, 1, 1, 12}}, {{1, 10}}});
  LayerRun run(row, {});
  Start start = run.make_start();
  start.bottom = {{0.5, 0.5, 0.8, 0.2, 0.3, 0.7},
                  {0.5, 0.25, 0.75},
                  {0.1, 0, 0, 0, 0, 0.2, 0, 0, 0, 0, 0, 0},
                  {30, 40, 69, 59, 1, 40, 30, 59, 69, 0}};
  start.top_diff = {{2}};
  const Outcome outcome = run.backward(start);
  expect_values({0, -4, -2.5, 0, 0, 0}, outcome.bottom_diff[0], kFewDigits);
  // The first anchor's box is 34 to 74 and 40 to 60, the second's 40 to 60 and 38 to 78.
  const double first = 35.0 * 19 / (800 + 741 - 35 * 19);
  const double second = 19.0 * 31 / (800 + 741 - 19 * 31);
  expect_values(
      {2 * 2 * (0.5 - first) + 2 * 2 * 3 * 0.5, 2 * 2 * (0.25 - second) + 12 * 0.25, 2 * 12 * 0.75},
      outcome.bottom_diff[1], kFewDigits);
  expect_values({0.8, 0, 0, 0, 0, 1.6, 0, 0, 0, 0, 0, 0}, outcome.bottom_diff[2], kFewDigits);
}

// The losses are 0.69, 2.13, 0.31 and 0.13: the two largest give gradients, the loss is of all.
TEST(OwnGradients, HardRatioLeavesTheEasyPlacesOut) {
  const Row row = row_of("type: \"SoftmaxWithLoss\" softmax_param { hard_ratio: 0.5 }",
                         {{{4, 2}}, {{4}}, {{4}}});
  LayerRun run(row, {});
  Start start = run.make_start();
  start.bottom = {{0, 0, 0, 2, 0, -1, 0, -2}, {0, 0, 0, 0}, {1, 1, 1, 1}};
  start.top_diff = {{2}};
  const Outcome outcome = run.backward(start);
  expect_values({(0.693147181 + 2.126928011 + 0.313261688 + 0.126928011) / 4}, outcome.top[0]);
  expect_values({-0.5, 0.5, -0.880797078, 0.880797078, 0, 0, 0, 0}, outcome.bottom_diff[0]);
}

TEST(OwnGradients, InnerProductTakesNoAccountOfMakingRowsUnits) {
  const Row row = row_of(
      "type: \"InnerProduct\" inner_product_param { num_output: 1 normalize: true bias_term: false "
      "}",
      {{{1, 2}}});
  LayerRun run(row, {});
  Start start = run.make_start();
  start.bottom = {{1, 2}};
  start.parameter = {{3000, 4000}};
  start.top_diff = {{2}};
  const Outcome outcome = run.backward(start);
  expect_values({2.2}, outcome.top[0]);
  expect_values({0.6, 0.8}, outcome.parameter[0]);
  expect_values({2, 4}, outcome.parameter_diff[0]);
  expect_values({1.2, 1.6}, outcome.bottom_diff[0]);
}

// Scores 0 and 1, of two examples whose loss is divided by 2.
TEST(OwnGradients, TheEndOfAClassifierGoesThroughTheReluThatMadeItsBottom) {
  Row row = row_of(
      "type: \"InnerProduct+SoftmaxWithLoss\" inner_product_param { num_output: 2 bias_term: false "
      "}",
      {{{2, 2}}, {{2}}});
  row.through_relu = 4;
  LayerRun run(row, {});
  Start start = run.make_start();
  start.bottom = {{1, 0, 0, 0.5}, {0, 1}};
  start.parameter = {{0, 0, 1, 2}};
  start.top_diff = {{1}};
  const Outcome outcome = run.backward(start);
  const double p = 0.731058579;  // of the second class
  expect_values({4 * p / 2, 0, 0, 4 * (p - 1) / 2 * 2}, outcome.bottom_diff[0], kFewDigits);
  expect_values({-p / 2, (1 - p) / 4, p / 2, (p - 1) / 4}, outcome.parameter_diff[0], kFewDigits);
}

// Apart: the link of 0.4 connects both pairs; together: that of 0.8 the only one. Half of their
// slopes; the third link leads out of the volume.
TEST(OwnGradients, MalisLossGivesHalfOfTheSlopes) {
  const Row row = row_of("type: \"MalisLoss\"", {{{1, 1, 3}}, {{1, 1, 3}}, {{1, 1, 3}}});
  LayerRun run(row, {});
  Start start = run.make_start();
  start.bottom = {{0.8, 0.4, 0.9}, {1, 0, 1}, {1, 1, 2}};
  start.top_diff = {{2}};
  const Outcome outcome = run.backward(start);
  expect_values({-0.2, 0.4, 0}, outcome.bottom_diff[0]);
}

}  // namespace own_gradients_test
}  // namespace crema
