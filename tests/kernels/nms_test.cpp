#include "kernels/detection/nms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/random.h"
#include "kernels/reduce/sort_key.h"

namespace crema {
namespace nms_test {

TEST(SortKey, SortsAsScoresDo) {
  const float infinite = std::numeric_limits<float>::infinity();
  const float scores[] = {infinite, 3.5f, 1e-30f, 0, -1e-30f, -2, -infinite};
  for (size_t i = 0; i + 1 < std::size(scores); ++i)
    EXPECT_GT(sort_key(scores[i], 7), sort_key(scores[i + 1], 3)) << i;
  EXPECT_GT(sort_key(-0.0f, 2), sort_key(0.0f, 3));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_GT(sort_key(nan, 3), sort_key(infinite, 2));
  EXPECT_LT(sort_key(std::copysign(nan, -1.0f), 2), sort_key(-infinite, 3));
  EXPECT_GT(sort_key(std::copysign(nan, -1.0f), 0xfffffffe), 0u);
  for (const float score : scores) {
    EXPECT_EQ(score_of_key(sort_key(score, 12345)), score);
    EXPECT_EQ(position_of_key(sort_key(score, 12345)), 12345);
  }
}

TEST(Nms, ByHand) {
  // Two lists of five boxes, of which 1 and 3 are the same.
  const std::vector<Box> boxes{
      {0, 0, 1, 1}, {2, 0, 3, 1}, {4, 0, 5, 1}, {2, 0, 3, 1}, {6, 0, 7, 1}};
  const std::vector<float> scores{0.1f, 9, 0.7f, 8, 0.05f, 7, 0.7f, 6, 0.9f, 5};
  NmsInput input;
  input.lists_per_group = 2;
  input.boxes_per_list = 5;
  input.scores = scores.data();
  input.boxes = boxes.data();
  input.min_score = 0.05f;
  Context context(Device::cpu);
  const auto lefts = [&] {
    std::vector<std::vector<float>> all;
    for (const auto& found : copy_detections(context, nms_on_host(input))) {
      all.emplace_back();
      for (const Detection& d : found) all.back().push_back(d.box.x1);
    }
    return all;
  };
  using Lefts = std::vector<std::vector<float>>;
  EXPECT_EQ(lefts(), (Lefts{{6, 2, 0}, {0, 2, 4, 6}}));
  input.max_candidates = 3;
  EXPECT_EQ(lefts(), (Lefts{{6, 2}, {0, 2, 4}}));
  input.suppression.threshold = 2;
  EXPECT_EQ(lefts(), (Lefts{{6, 2, 2}, {0, 2, 4}}));
  // Scores 0.9, 0.7, 0.7 and 9, 8, 7: equal ones of a list stay in the order of its boxes.
  input.max_per_group = 4;
  EXPECT_EQ(lefts(), (Lefts{{6}, {0, 2, 4}}));
  input.max_per_group = 0;
  EXPECT_EQ(lefts(), (Lefts{{}, {}}));
  input.max_per_group = -1;
  input.skipped_list = 1;
  EXPECT_EQ(lefts(), (Lefts{{6, 2, 2}, {}}));
}

struct Case {
  int64_t groups, count, each, candidates, maximum;
  float threshold, eta;
  int64_t max_per_group = -1;
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
                        Case{2, 40, 2, 0, -1, 0.5f, 1, 10}, Case{2, 40, 2, -1, 0, 0.5f, 1, 10},
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
    NmsInput input;
    input.groups = c.groups;
    input.lists_per_group = c.each;
    input.boxes_per_list = c.count;
    input.min_score = -0.5f;
    input.max_candidates = c.candidates;
    input.suppression = {c.threshold, c.eta, 0, c.maximum, c.by};
    input.max_per_group = c.max_per_group;
    input.scores = scores.data();
    input.boxes = boxes.data();
    const auto wanted = copy_detections(context, nms_on_host(input));
    const auto bytes = [](const auto& values) { return values.size() * sizeof(values[0]); };
    Buffer scores_there(context, bytes(scores)), boxes_there(context, bytes(boxes)),
        workspace(context, nms_workspace(context, input));
    copy_bytes(context, scores_there.data(), Device::gpu, scores.data(), Device::cpu,
               bytes(scores));
    copy_bytes(context, boxes_there.data(), Device::gpu, boxes.data(), Device::cpu, bytes(boxes));
    input.scores = static_cast<const float*>(scores_there.data());
    input.boxes = static_cast<const Box*>(boxes_there.data());
    const auto found = copy_detections(context, nms(context, input, workspace.data()));
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
