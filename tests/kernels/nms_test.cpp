#include "kernels/detection/nms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/random.h"
#include "kernels/core/rank.h"

namespace crema {
namespace nms_test {

TEST(Rank, SortsAsScoresDo) {
  const float infinite = std::numeric_limits<float>::infinity();
  const float scores[] = {infinite, 3.5f, 1e-30f, 0, -1e-30f, -2, -infinite};
  for (size_t i = 0; i + 1 < std::size(scores); ++i)
    EXPECT_GT(rank_of(scores[i], 7), rank_of(scores[i + 1], 3)) << i;
  EXPECT_GT(rank_of(-0.0f, 2), rank_of(0.0f, 3));
  for (const float score : scores) {
    EXPECT_EQ(ranked_score(rank_of(score, 12345)), score);
    EXPECT_EQ(ranked_position(rank_of(score, 12345)), 12345);
  }
}

TEST(Nms, ByHand) {
  // Two lists of five boxes, of which 1 and 3 are the same.
  const std::vector<Box> boxes{
      {0, 0, 1, 1}, {2, 0, 3, 1}, {4, 0, 5, 1}, {2, 0, 3, 1}, {6, 0, 7, 1}};
  const std::vector<float> scores{0.1f, 9, 0.7f, 8, 0.05f, 7, 0.7f, 6, 0.9f, 5};
  BoxLists lists{1, 5, 2};
  lists.scores = scores.data();
  lists.boxes = boxes.data();
  lists.minimum = 0.05f;
  Context context(Device::cpu);
  const auto lefts = [&] {
    std::vector<std::vector<float>> all;
    for (const auto& found : in_lists(context, nms_on_host(lists))) {
      all.emplace_back();
      for (const Detection& d : found) all.back().push_back(d.box.x1);
    }
    return all;
  };
  using Lefts = std::vector<std::vector<float>>;
  EXPECT_EQ(lefts(), (Lefts{{6, 2, 0}, {0, 2, 4, 6}}));
  lists.candidates = 3;
  EXPECT_EQ(lefts(), (Lefts{{6, 2}, {0, 2, 4}}));
  lists.suppression.threshold = 2;
  EXPECT_EQ(lefts(), (Lefts{{6, 2, 2}, {0, 2, 4}}));
  // Scores 0.9, 0.7, 0.7 and 9, 8, 7: equal ones of a list stay in the order of its boxes.
  lists.max_of_group = 4;
  EXPECT_EQ(lefts(), (Lefts{{6}, {0, 2, 4}}));
  lists.max_of_group = 0;
  EXPECT_EQ(lefts(), (Lefts{{}, {}}));
  lists.max_of_group = -1;
  lists.left_out = 1;
  EXPECT_EQ(lefts(), (Lefts{{6, 2, 2}, {}}));
}

struct Case {
  int64_t groups, count, each, candidates, maximum;
  float threshold, eta;
  int64_t max_of_group = -1;
  OverlapBy by = OverlapBy::both;
};

// A GPU finds what the CPU finds: corners are sixteenths, so that both compute the same overlaps,
// and scores have equals.
TEST(Nms, OnAGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  for (const Case& c : {Case{3, 900, 4, 100, -1, 0.3f, 1}, Case{2, 5000, 1, -1, 300, 0.7f, 1},
                        Case{1, 16384, 1, 16384, -1, 0.45f, 1}, Case{1, 20000, 1, -1, 50, 0.5f, 1},
                        Case{2, 700, 3, 64, 20, 0.9f, 0.95f}, Case{1, 40, 2, -1, -1, 2, 1},
                        Case{2, 900, 4, 100, -1, 0.3f, 1, 150}, Case{3, 300, 2, -1, 40, 0.5f, 1, 0},
                        Case{2, 5000, 1, -1, -1, 0.8f, 0.9f, 700},
                        Case{2, 3000, 1, 2000, -1, 0.6f, 1, -1, OverlapBy::smaller},
                        Case{2, 3000, 1, 2000, -1, 0.6f, 1, -1, OverlapBy::second}}) {
    const Random random{5, 7};
    std::vector<float> scores(c.groups * c.count * c.each);
    for (size_t i = 0; i < scores.size(); ++i)
      scores[i] = std::floor(random.uniform(i) * 512) / 256 - 1;
    std::vector<Box> boxes(c.groups * c.count);
    for (size_t i = 0; i < boxes.size(); ++i) {
      const auto number = [&](int k, float maximum) {
        return std::floor(random.uniform(1000000 + 4 * i + k) * maximum * 16) / 16;
      };
      boxes[i] = {number(0, 20), number(1, 20), 0, 0};
      boxes[i].x2 = boxes[i].x1 + number(2, 9);
      boxes[i].y2 = boxes[i].y1 + number(3, 9);
    }
    BoxLists lists{c.groups, c.count, c.each};
    lists.minimum = -0.5f;
    lists.candidates = c.candidates;
    lists.suppression = {c.threshold, c.eta, 0, c.maximum, c.by};
    lists.max_of_group = c.max_of_group;
    lists.scores = scores.data();
    lists.boxes = boxes.data();
    const auto wanted = in_lists(context, nms_on_host(lists));
    const auto bytes = [](const auto& values) { return values.size() * sizeof(values[0]); };
    Buffer scores_there(context, bytes(scores)), boxes_there(context, bytes(boxes)),
        workspace(context, nms_workspace(context, lists));
    copy_bytes(context, scores_there.data(), Device::gpu, scores.data(), Device::cpu,
               bytes(scores));
    copy_bytes(context, boxes_there.data(), Device::gpu, boxes.data(), Device::cpu, bytes(boxes));
    lists.scores = static_cast<const float*>(scores_there.data());
    lists.boxes = static_cast<const Box*>(boxes_there.data());
    const auto found = in_lists(context, nms(context, lists, workspace.data()));
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t list = 0; list < wanted.size(); ++list) {
      ASSERT_EQ(found[list].size(), wanted[list].size()) << "list " << list << " of " << c.count;
      for (size_t i = 0; i < wanted[list].size(); ++i) {
        EXPECT_EQ(found[list][i].score, wanted[list][i].score);
        EXPECT_EQ(found[list][i].group, wanted[list][i].group);
        EXPECT_EQ(found[list][i].label, wanted[list][i].label);
        EXPECT_EQ(found[list][i].box.x1, wanted[list][i].box.x1);
        EXPECT_EQ(found[list][i].box.y2, wanted[list][i].box.y2);
      }
    }
  }
}

}  // namespace nms_test
}  // namespace crema
