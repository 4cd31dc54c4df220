// Where the boxes of a drawing lie: what must hold of every layout, and the rows, columns and
// upright chains of nets whose picture is known.
#include "tools/pages/drawing/net_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tools/pages/drawing/row_order.h"

namespace crema::tests {
namespace net_layout_test {

Layout layout_of(size_t boxes, const std::vector<std::pair<int, int>>& lines) {
  Layout layout;
  for (size_t i = 0; i < boxes; ++i) {
    LayoutBox box;
    box.width = 100 + 20 * static_cast<double>(i % 4);
    box.height = 60 + 15 * static_cast<double>(i % 3);
    layout.boxes.push_back(box);
  }
  for (const auto& [from, to] : lines) layout.lines.push_back({from, to});
  return layout;
}

bool overlap(const LayoutBox& a, const LayoutBox& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

bool is_inside(const LayoutPoint& point, const LayoutBox& box) {
  return point.x > box.x + 0.1 && point.x < box.x + box.width - 0.1 && point.y > box.y + 0.1 &&
         point.y < box.y + box.height - 0.1;
}

// Boxes do not overlap and are inside the drawing; lines lead from box to box and through none.
void expect_readable(const Layout& layout) {
  for (size_t i = 0; i < layout.boxes.size(); ++i) {
    const LayoutBox& box = layout.boxes[i];
    EXPECT_TRUE(std::isfinite(box.x) && std::isfinite(box.y)) << i;
    EXPECT_GE(box.x, -0.01) << i;
    EXPECT_GE(box.y, -0.01) << i;
    EXPECT_LE(box.x + box.width, layout.width + 0.01) << i;
    EXPECT_LE(box.y + box.height, layout.height + 0.01) << i;
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(overlap(box, layout.boxes[j])) << i << " " << j;
  }
  for (const LayoutLine& line : layout.lines) {
    const LayoutBox& from = layout.boxes[line.from];
    const LayoutBox& to = layout.boxes[line.to];
    ASSERT_GE(line.points.size(), 2u);
    EXPECT_NEAR(line.points.front().y, from.y + from.height, 0.01);
    EXPECT_NEAR(line.points.back().y, to.y, 0.01);
    EXPECT_GT(line.points.back().x, to.x);
    EXPECT_LT(line.points.back().x, to.x + to.width);
    for (size_t i = 1; i < line.points.size(); ++i) {
      const LayoutPoint a = line.points[i - 1], b = line.points[i];
      // Curves run between rows, where no box is; vertical or horizontal ones could meet one.
      if (std::abs(a.x - b.x) > 0.05 && std::abs(a.y - b.y) > 0.05) continue;
      const LayoutPoint middle = {(a.x + b.x) / 2, (a.y + b.y) / 2};
      for (const LayoutBox& box : layout.boxes) {
        EXPECT_FALSE(is_inside(middle, box))
            << "line " << line.from << " - " << line.to << " at " << middle.x << " " << middle.y;
      }
    }
  }
}

TEST(NetLayout, IsReadableForAnyNet) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const int boxes = 1 + static_cast<int>(random() % 60);
    std::vector<std::pair<int, int>> lines;
    for (int to = 1; to < boxes; ++to) {
      const int from = std::max(0, to - 1 - static_cast<int>(random() % 6));
      if (random() % 8 > 0) lines.emplace_back(from, to);
      const auto far = static_cast<int>(random() % static_cast<unsigned>(to));
      if (random() % 3 == 0 && far != from) lines.emplace_back(far, to);
    }
    Layout layout = layout_of(boxes, lines);
    lay_out(&layout);
    SCOPED_TRACE(round);
    expect_readable(layout);
  }
}

TEST(NetLayout, HasARowForEachStepOfTheLongestPath) {
  // 0 - 1 - 2 - 4, 3 a source of 4 alone, 5 alone.
  const std::vector<LayoutLine> lines = {{0, 1}, {1, 2}, {2, 4}, {0, 4}, {3, 4}};
  EXPECT_EQ(rows_of(6, lines), (std::vector<int>{0, 1, 2, 2, 3, 0}));
}

TEST(NetLayout, AChainIsUprightBesideABranchAndASkippingLine) {
  // A projected block of a ResNet: 0 forks to 1 and to the chain 2 - 3 - 4; 5 joins, 6 follows, and
  // a line from 5 skips 6 and 7.
  Layout layout = layout_of(
      9, {{0, 1}, {0, 2}, {2, 3}, {3, 4}, {1, 5}, {4, 5}, {5, 6}, {6, 7}, {7, 8}, {5, 8}});
  lay_out(&layout);
  expect_readable(layout);
  const auto middle = [&](int box) { return layout.boxes[box].x + layout.boxes[box].width / 2; };
  EXPECT_NEAR(middle(2), middle(3), 0.1);
  EXPECT_NEAR(middle(3), middle(4), 0.1);
  EXPECT_NEAR(middle(6), middle(7), 0.1);
  EXPECT_EQ(layout.boxes[8].column, 0);
}

TEST(NetLayout, ATallNetGoesOnInColumnsAfterABlock) {
  // Blocks of a fork, two branches and a join.
  std::vector<std::pair<int, int>> lines;
  const int blocks = 20;
  for (int block = 0; block < blocks; ++block) {
    const int at = 3 * block;
    lines.insert(lines.end(), {{at, at + 1}, {at, at + 2}, {at + 1, at + 3}, {at + 2, at + 3}});
  }
  Layout layout = layout_of(3 * blocks + 1, lines);
  lay_out(&layout);
  expect_readable(layout);
  EXPECT_GT(layout.boxes.back().column, 1);
  EXPECT_LE(layout.width, layout.widest);
  for (int block = 0; block < blocks; ++block) {
    for (int box = 2; box <= 3; ++box)
      EXPECT_EQ(layout.boxes[3 * block + box].column, layout.boxes[3 * block + 1].column) << block;
  }
  layout = layout_of(3, {{0, 1}, {1, 2}});
  lay_out(&layout);
  EXPECT_EQ(layout.boxes[2].column, 0);
}

TEST(NetLayout, ACrossingThatNeedNotBeIsRemoved) {
  // Two chains whose boxes alternate in the second row, in reverse order.
  RowItems all;
  all.items.resize(4);
  all.rows = {{0, 1}, {2, 3}};
  const auto connect = [&](int above, int below) {
    all.items[above].below.push_back(below);
    all.items[below].above.push_back(above);
  };
  connect(0, 3);
  connect(1, 2);
  EXPECT_EQ(crossings(all), 1);
  order_rows(&all);
  EXPECT_EQ(crossings(all), 0);
  connect(0, 2);
  connect(1, 3);  // each with each: one must cross
  order_rows(&all);
  EXPECT_EQ(crossings(all), 1);
}

}  // namespace net_layout_test
}  // namespace crema::tests
