#include "kernels/detection/boxes.h"

#include <gtest/gtest.h>

namespace crema {
namespace boxes_test {

TEST(Boxes, OverlapByHand) {
  const Box a{0, 0, 2, 2}, b{1, 1, 3, 3};
  EXPECT_FLOAT_EQ(overlap(a, b), 1.f / 7);
  EXPECT_FLOAT_EQ(overlap(a, a), 1);
  EXPECT_FLOAT_EQ(overlap(a, {2, 0, 4, 2}), 0);  // they only touch
  // In pixels: two of three columns and rows in common.
  EXPECT_FLOAT_EQ(overlap(a, b, 1), 4.f / 14);
  EXPECT_FLOAT_EQ(overlap({3, 3, 3, 3}, {3, 3, 3, 3}, 1), 1);
  EXPECT_FLOAT_EQ(overlap({3, 3, 3, 3}, {3, 3, 3, 3}), 0);
  EXPECT_FLOAT_EQ(area({2, 0, 1, 5}), 0);
  EXPECT_FLOAT_EQ(area(a, 1), 9);
}

TEST(Boxes, ClipsAtTheBorder) {
  const Box b = clipped({-0.5f, 0.25f, 1.5f, 2});
  EXPECT_EQ(b.x1, 0);
  EXPECT_EQ(b.y1, 0.25f);
  EXPECT_EQ(b.x2, 1);
  EXPECT_EQ(b.y2, 1);
}

void expect_near(const Box& a, const Box& b) {
  EXPECT_NEAR(a.x1, b.x1, 1e-5);
  EXPECT_NEAR(a.y1, b.y1, 1e-5);
  EXPECT_NEAR(a.x2, b.x2, 1e-5);
  EXPECT_NEAR(a.y2, b.y2, 1e-5);
}

TEST(Boxes, DecodesByHand) {
  const Box prior{1, 2, 3, 6};  // centre (2, 4), 2 wide, 4 high
  const BoxVariances variances{{0.1f, 0.1f, 0.2f, 0.2f}};
  expect_near(decode(BoxCoding::corner, prior, variances, {1, 2, 3, 4}), {1.1f, 2.2f, 3.6f, 6.8f});
  expect_near(decode(BoxCoding::corner_size, prior, variances, {1, 2, 3, 4}),
              {1.2f, 2.8f, 4.2f, 9.2f});
  // Centre (2.2, 4.8), twice as wide and half as high.
  const float twice = std::log(2.f) / 0.2f;
  expect_near(decode(BoxCoding::center_size, prior, variances, {1, 2, twice, -twice}),
              {0.2f, 3.8f, 4.2f, 5.8f});
}

TEST(Boxes, EncodeUndoesDecode) {
  const Box prior{0.1f, 0.2f, 0.4f, 0.9f}, box{0.15f, 0.1f, 0.6f, 0.7f};
  for (BoxCoding coding : {BoxCoding::corner, BoxCoding::center_size, BoxCoding::corner_size}) {
    for (const BoxVariances& variances : {BoxVariances{}, BoxVariances{{0.1f, 0.1f, 0.2f, 0.2f}}}) {
      expect_near(decode(coding, prior, variances, encode(coding, prior, variances, box)), box);
    }
  }
}

TEST(Boxes, SuppressionKeepsTheBest) {
  // 1 overlaps 0 by 2/3, 2 overlaps 1 by 2/3 and 0 by 3/7, 3 overlaps none.
  const std::vector<Box> boxes{{0, 0, 10, 1}, {2, 0, 12, 1}, {4, 0, 14, 1}, {50, 0, 60, 1}};
  const std::vector<int> order{0, 1, 2, 3};
  using Kept = std::vector<int>;
  EXPECT_EQ(suppress(boxes.data(), order, {.threshold = 0.5f}), (Kept{0, 2, 3}));
  EXPECT_EQ(suppress(boxes.data(), order, {.threshold = 0.4f}), (Kept{0, 3}));
  EXPECT_EQ(suppress(boxes.data(), order, {.threshold = 0.7f}), (Kept{0, 1, 2, 3}));
  EXPECT_EQ(suppress(boxes.data(), order, {.threshold = 0.7f, .maximum = 2}), (Kept{0, 1}));
  // After the first box the threshold is 0.56, and stays there once it is below 0.5.
  EXPECT_EQ(suppress(boxes.data(), order, {.threshold = 0.7f, .eta = 0.8f}), (Kept{0, 2, 3}));
  EXPECT_EQ(suppress(boxes.data(), {2, 0, 1}, {.threshold = 0.5f}), (Kept{2, 0}));
  // No overlap is larger than 1.
  EXPECT_EQ(suppress(boxes.data(), order, {.threshold = 2, .maximum = 3}), (Kept{0, 1, 2}));
}

}  // namespace boxes_test
}  // namespace crema
