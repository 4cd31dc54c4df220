// DetectNetTransformation's target maps, worked out by hand; rows/detectnet.rows has its images.
#include <gtest/gtest.h>

#include "layers/layer_run.h"

namespace crema {
namespace detectnet_test {

// Image 8 x 4, boxes as given (x, y, width, height, class), 2 x 4 cells of 2 pixels.
Outcome run(const std::vector<std::vector<double>>& boxes, const std::string& fields,
            bool training = false) {
  Row row;
  row.file = "detectnet";
  row.name = "row";
  row.training = training;
  row.gradient = false;
  const auto rows = static_cast<int64_t>(boxes.size());
  row.bottoms = {{{1, 3, 4, 8}}, {{1, 1, 1 + rows, 16}}};
  row.text = cat(
      "type: \"DetectNetTransformation\" detectnet_groundtruth_param { stride: 2 image_size_x: 8 "
      "image_size_y: 4 ",
      fields, " }");
  if (training)
    row.text +=
        " detectnet_augmentation_param { crop_prob: 0 flip_prob: 1 scale_prob: 0 rotation_prob: 0 "
        "hue_rotation_prob: 0 desaturation_prob: 0 }";
  LayerRun layer(row, {});
  Start start = layer.make_start();
  std::vector<double>& labels = start.bottom[1];
  labels.assign(labels.size(), 0);
  labels[0] = static_cast<double>(rows);
  labels[1] = 16;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < 4; ++k) labels[16 * (i + 1) + k] = boxes[i][k];
    labels[16 * (i + 1) + 5] = boxes[i][4];
  }
  return layer.forward(start);
}

using Cells = std::vector<double>;  // 2 rows of 4

void expect_channel(const Outcome& outcome, int64_t channel, const Cells& want) {
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_NEAR(want[i], outcome.top[1][channel * 8 + i], 1e-6) << channel << ", cell " << i;
}

// The box is 4 x 2 at (1, 1): its covered half is 2 x 1 around (3, 2).
TEST(DetectNet, CellsThatTheMiddleOfABoxMeetsAreCovered) {
  const Outcome outcome = run({{1, 1, 4, 2, 1}}, "scale_cvg: 0.5 obj_norm: true");
  ASSERT_EQ(outcome.top[1].size(), 9u * 8);
  expect_channel(outcome, 0, {0, 1, 0, 0, 0, 1, 0, 0});
  expect_channel(outcome, 1, {0, -1, 0, 0, 0, -1, 0, 0});
  expect_channel(outcome, 2, {0, 1, 0, 0, 0, -1, 0, 0});
  expect_channel(outcome, 3, {0, 3, 0, 0, 0, 3, 0, 0});
  expect_channel(outcome, 4, {0, 3, 0, 0, 0, 1, 0, 0});
  expect_channel(outcome, 5, {0, 0.25, 0, 0, 0, 0.25, 0, 0});
  expect_channel(outcome, 6, {0, 0.5, 0, 0, 0, 0.5, 0, 0});
  expect_channel(outcome, 7, {0, 2, 0, 0, 0, 2, 0, 0});
  expect_channel(outcome, 8, {0, 1, 0, 0, 0, 1, 0, 0});
}

// Both cover all columns of a row, the second one only from column 2 on; class 3 is not trained.
TEST(DetectNet, TheLastBoxOfATrainedClassWins) {
  const Outcome outcome =
      run({{0, 0, 8, 2, 7}, {4, 0, 4, 2, 1}, {0, 0, 8, 4, 3}},
          "scale_cvg: 1 object_class { src: 1 dst: 0 } object_class { src: 7 dst: 2 }");
  ASSERT_EQ(outcome.top[1].size(), 11u * 8);
  expect_channel(outcome, 0, {1, 1, 1, 1, 0, 0, 0, 0});
  expect_channel(outcome, 1, {0, -2, 0, -2, 0, 0, 0, 0});
  // 4 / 16 and 4 / 8, but at least 1 without obj_norm.
  expect_channel(outcome, 7, {1, 1, 1, 1, 0, 0, 0, 0});
  expect_channel(outcome, 8, {0, 0, 1, 1, 0, 0, 0, 0});
  expect_channel(outcome, 9, Cells(8));
  expect_channel(outcome, 10, {1, 1, 0, 0, 0, 0, 0, 0});
}

TEST(DetectNet, TheCoveredAreaHasLimits) {
  const std::vector<std::vector<double>> box = {{0, 0, 8, 2, 1}};
  expect_channel(run(box, "scale_cvg: 0.25 gridbox_type: GRIDBOX_MIN min_cvg_len: 4"), 0,
                 {0, 1, 1, 0, 0, 0, 0, 0});
  expect_channel(run(box, "scale_cvg: 1 gridbox_type: GRIDBOX_MAX max_cvg_len: 4"), 0,
                 {0, 1, 1, 0, 0, 0, 0, 0});
}

// Half of the box is outside: the covered area is the middle of the rest, or of the whole.
TEST(DetectNet, BoxesAreCutAtTheBorder) {
  const std::vector<std::vector<double>> box = {{4, 0, 8, 4, 1}};
  const Outcome cut = run(box, "scale_cvg: 0.5"),
                whole = run(box, "scale_cvg: 0.5 crop_bboxes: false");
  expect_channel(cut, 0, {0, 0, 1, 1, 0, 0, 1, 1});
  expect_channel(cut, 3, {0, 0, 4, 2, 0, 0, 4, 2});
  expect_channel(whole, 0, {0, 0, 0, 1, 0, 0, 0, 1});
  expect_channel(whole, 3, {0, 0, 0, 6, 0, 0, 0, 6});
}

// Mirrored in training: from column 0 to 8 - 0 - 2 - 1.
TEST(DetectNet, BoxesGoAlongWithTheirImage) {
  const Outcome outcome = run({{0, 0, 2, 2, 1}}, "scale_cvg: 1", true);
  expect_channel(outcome, 0, {0, 0, 1, 1, 0, 0, 0, 0});
  expect_channel(outcome, 1, {0, 0, 1, -1, 0, 0, 0, 0});
}

}  // namespace detectnet_test
}  // namespace crema
