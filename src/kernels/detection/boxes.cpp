#include "kernels/detection/boxes.h"

#include <algorithm>

namespace crema {
namespace {

// The kept boxes as a structure of arrays, so that a box is compared with several of them at once.
class Kept {
 public:
  void add(const Box& box, float pixel) {
    x1_.push_back(box.x1);
    y1_.push_back(box.y1);
    x2_.push_back(box.x2);
    y2_.push_back(box.y2);
    area_.push_back(area(box, pixel));
  }

  // True when a kept box overlaps the box by more than `threshold`.
  bool cover(const Box& box, float pixel, OverlapBy by, float threshold) const {
    constexpr size_t kTogether = 128;
    const float own = area(box, pixel);
    for (size_t first = 0; first < x1_.size(); first += kTogether) {
      const size_t end = std::min(first + kTogether, x1_.size());
      int covers = 0;
#pragma omp simd reduction(| : covers)
      for (size_t i = first; i < end; ++i) {
        const Box both = intersection(box, {x1_[i], y1_[i], x2_[i], y2_[i]});
        const float width = both.x2 - both.x1 + pixel, height = both.y2 - both.y1 + pixel;
        const float covered = width * height,
                    shared = covered / divisor_of_overlap(by, covered, own, area_[i]);
        covers |= (width <= 0 || height <= 0 ? 0.0f : shared) > threshold;
      }
      if (covers) return true;
    }
    return false;
  }

 private:
  std::vector<float> x1_, y1_, x2_, y2_, area_;
};

}  // namespace

std::vector<int> suppress(const Box* boxes, const std::vector<int>& order, const Suppression& how) {
  const size_t maximum = how.maximum < 0 ? order.size() : static_cast<size_t>(how.maximum);
  if (how.threshold > 1 && how.eta == 1)  // no overlap exceeds 1
    return {order.begin(), order.begin() + static_cast<int64_t>(std::min(maximum, order.size()))};
  Kept kept;
  std::vector<int> stay;
  float threshold = how.threshold;
  for (int candidate : order) {
    if (stay.size() >= maximum) break;
    if (kept.cover(boxes[candidate], how.pixel, how.by, threshold)) continue;
    kept.add(boxes[candidate], how.pixel);
    stay.push_back(candidate);
    if (how.eta < 1 && threshold > 0.5f) threshold *= how.eta;
  }
  return stay;
}

}  // namespace crema
