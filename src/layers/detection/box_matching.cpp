#include "layers/detection/box_matching.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/labels/labels.h"

namespace crema {
namespace {

constexpr float kMinOverlap = 1e-6f;

// The unmatched box that overlaps an object most.
struct Candidate {
  float overlap = kMinOverlap;
  int box = -1;
};

class Matcher {
 public:
  Matcher(const std::vector<Object>& objects, const std::vector<Box>& boxes, const MatchRule& rule)
      : objects_(objects), count_(static_cast<int>(boxes.size())) {
    matches_.object.assign(count_, kNoObject);
    matches_.overlap.assign(count_, 0);
    for (int j = 0; j < static_cast<int>(objects.size()); ++j) {
      if (rule.label < 0 || objects[j].label == rule.label) among_.push_back(j);
    }
    overlaps_.resize(among_.size());
    for (size_t k = 0; k < among_.size(); ++k) {
      overlaps_[k].resize(count_);
      for (int i = 0; i < count_; ++i) overlaps_[k][i] = overlap(boxes[i], objects[among_[k]].box);
    }
    for (int i = 0; i < count_ && !among_.empty(); ++i) {
      const Box& b = boxes[i];
      const bool crossing = b.x1 < 0 || b.x1 > 1 || b.y1 < 0 || b.y1 > 1 || b.x2 < 0 || b.x2 > 1 ||
                            b.y2 < 0 || b.y2 > 1;
      if (rule.ignore_crossing && crossing) {
        matches_.object[i] = kIgnored;
        continue;
      }
      for (const std::vector<float>& of_object : overlaps_) {
        if (of_object[i] > kMinOverlap)
          matches_.overlap[i] = std::max(matches_.overlap[i], of_object[i]);
      }
    }
  }

  BoxMatches run(const MatchRule& rule) {
    match_best();
    for (int i = 0; i < count_; ++i) {
      if (matches_.object[i] == kNoObject) match_over(rule.threshold, i);
      const int object = matches_.object[i];
      if (rule.ignore_difficult && object >= 0 && objects_[object].difficult)
        matches_.object[i] = kIgnored;
    }
    return std::move(matches_);
  }

 private:
  Candidate best_for(size_t k) const {
    Candidate best;
    for (int i = 0; i < count_; ++i) {
      if (matches_.object[i] == kNoObject && overlaps_[k][i] > best.overlap)
        best = {overlaps_[k][i], i};
    }
    return best;
  }

  void match_best() {
    std::vector<Candidate> best(among_.size());
    std::vector<size_t> left;
    for (size_t k = 0; k < among_.size(); ++k) {
      best[k] = best_for(k);
      left.push_back(k);
    }
    while (!left.empty()) {
      const auto before = [&](size_t a, size_t b) {
        if (best[a].overlap != best[b].overlap) return best[a].overlap > best[b].overlap;
        return best[a].box != best[b].box ? best[a].box < best[b].box : a < b;
      };
      const auto next = std::min_element(left.begin(), left.end(), before);
      const Candidate chosen = best[*next];
      if (chosen.box < 0) return;
      matches_.object[chosen.box] = among_[*next];
      matches_.overlap[chosen.box] = chosen.overlap;
      left.erase(next);
      for (size_t k : left) {
        if (best[k].box == chosen.box) best[k] = best_for(k);
      }
    }
  }

  void match_over(float threshold, int i) {
    float best = -1;
    for (size_t k = 0; k < among_.size(); ++k) {
      const float of_object = overlaps_[k][i];
      if (of_object <= kMinOverlap || of_object < threshold || of_object <= best) continue;
      best = of_object;
      matches_.object[i] = among_[k];
      matches_.overlap[i] = of_object;
    }
  }

  const std::vector<Object>& objects_;
  int count_;
  std::vector<int> among_;                    // indices of the matched objects
  std::vector<std::vector<float>> overlaps_;  // overlap of each of them with each box
  BoxMatches matches_;
};

// Smaller boxes are dropped without suppression.
constexpr float kMinArea = 1e-5f;

}  // namespace

std::map<int, std::vector<Object>> read_objects(const std::vector<float>& rows,
                                                const ObjectRule& rule) {
  std::map<int, std::vector<Object>> images;
  for (size_t i = 0; i + 8 <= rows.size(); i += 8) {
    const float* row = rows.data() + i;
    const int image = static_cast<int>(row[0]);
    if (image == -1) continue;
    const int label = is_class(row[1], rule.classes) ? static_cast<int>(row[1]) : -1;
    require(label >= 0 && label != rule.background, "an object of image ", image, " has label ",
            row[1], ", but with num_classes: ", rule.classes, " labels are 0 to ", rule.classes - 1,
            " without the background, ", rule.background);
    if (!rule.use_difficult && row[7] != 0) continue;
    images[image].push_back(
        {{row[3], row[4], row[5], row[6]}, label, row[7] != 0, static_cast<int>(i / 8)});
  }
  return images;
}

std::vector<Verdict> judge(const std::vector<Box>& found, const std::vector<Object>& objects,
                           const JudgeRule& rule) {
  std::vector<bool> seen(objects.size(), false);
  std::vector<Verdict> verdicts;
  for (const Box& box : found) {
    float maximum = -1;
    size_t nearest = 0;
    for (size_t j = 0; j < objects.size(); ++j) {
      const float share = overlap(box, objects[j].box, rule.pixel);
      if (share <= maximum) continue;
      maximum = share;
      nearest = j;
    }
    Verdict verdict;
    if (!objects.empty() && maximum >= rule.threshold) {
      const bool counts = rule.use_difficult || !objects[nearest].difficult;
      verdict.right = counts && !seen[nearest];
      verdict.wrong = counts && seen[nearest];
      if (counts) seen[nearest] = true;
    }
    verdicts.push_back(verdict);
  }
  return verdicts;
}

BoxMatches match_boxes(const std::vector<Object>& objects, const std::vector<Box>& boxes,
                       const MatchRule& rule) {
  return Matcher(objects, boxes, rule).run(rule);
}

std::vector<int> mine_boxes(const MiningRule& rule, const float* loss,
                            const std::vector<Box>& boxes, BoxMatches& matches) {
  const int count = static_cast<int>(matches.object.size());
  std::vector<int> eligible;
  int objects = 0;
  for (int i = 0; i < count; ++i) {
    objects += matches.object[i] >= 0;
    const bool background = matches.object[i] == kNoObject && matches.overlap[i] < rule.max_overlap;
    if (rule.hard_examples || background) eligible.push_back(i);
  }
  const float share = rule.hard_examples ? static_cast<float>(rule.maximum)
                                         : static_cast<float>(objects) * rule.ratio;
  const size_t maximum = std::min(eligible.size(), static_cast<size_t>(share));
  size_t sorted = maximum;
  if (rule.suppress) {
    sorted = eligible.size();
    if (rule.candidates >= 0) sorted = std::min(sorted, static_cast<size_t>(rule.candidates));
  }
  std::partial_sort(eligible.begin(), eligible.begin() + sorted, eligible.end(), [&](int a, int b) {
    return loss[a] > loss[b] || (loss[a] == loss[b] && a < b);
  });
  eligible.resize(sorted);
  if (rule.suppress) {
    std::erase_if(eligible, [&](int i) { return area(boxes[i]) < kMinArea; });
    eligible = suppress(boxes.data(), eligible, rule.suppression);
  }
  eligible.resize(std::min(maximum, eligible.size()));
  std::vector<bool> chosen(count, false);
  for (int i : eligible) chosen[i] = true;
  std::vector<int> background;
  for (int i = 0; i < count; ++i) {
    if (matches.object[i] == kNoObject && chosen[i]) background.push_back(i);
    if (matches.object[i] >= 0 && rule.hard_examples && !chosen[i]) matches.object[i] = kIgnored;
  }
  return background;
}

}  // namespace crema
