#include "layers/forks/loss/malis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace crema {
namespace {

// Disjoint sets of voxels connected by the links so far, with the number of voxels of each segment
// in each set.
class Parts {
 public:
  Parts(int64_t voxels, const double* segments) : above_(voxels), inside_(voxels), known_(voxels) {
    std::map<int64_t, int64_t> sizes;
    int64_t all = 0;
    for (int64_t v = 0; v < voxels; ++v) {
      above_[v] = v;
      const auto segment = static_cast<int64_t>(segments[v]);
      if (segment == 0) continue;
      inside_[v][segment] = known_[v] = 1;
      ++all;
      ++sizes[segment];
    }
    for (const auto& [segment, size] : sizes) same_ += pairs(size);
    different_ = pairs(all) - same_;
  }

  double all(VoxelPairs kind) const {
    return kind == VoxelPairs::of_one_segment ? same_ : different_;
  }

  // Connects two voxels; returns the number of pairs of this kind newly connected.
  double join(int64_t a, int64_t b, VoxelPairs kind) {
    a = root(a);
    b = root(b);
    if (a == b) return 0;
    if (inside_[a].size() < inside_[b].size()) std::swap(a, b);
    double same = 0;
    for (const auto& [segment, count] : inside_[b]) {
      int64_t& others = inside_[a][segment];
      same += static_cast<double>(count) * static_cast<double>(others);
      others += count;
    }
    const double every = static_cast<double>(known_[a]) * static_cast<double>(known_[b]);
    inside_[b].clear();
    known_[a] += known_[b];
    above_[b] = a;
    return kind == VoxelPairs::of_one_segment ? same : every - same;
  }

 private:
  static double pairs(int64_t count) {
    return static_cast<double>(count) * static_cast<double>(count - 1) / 2;
  }
  int64_t root(int64_t v) {
    while (above_[v] != v) v = above_[v] = above_[above_[v]];
    return v;
  }

  std::vector<int64_t> above_;
  std::vector<std::map<int64_t, int64_t>> inside_;  // per root
  std::vector<int64_t> known_;                      // per root: voxels that have a segment
  double same_ = 0, different_ = 0;
};

// Target voxel of a link, -1: outside the volume.
int64_t end_of(const VoxelLinks& links, size_t kind, int64_t voxel) {
  int64_t rest = voxel, end = 0, size = 1;
  for (int axis = 2; axis >= 0; --axis) {
    const int64_t at = rest % links.extent[axis] + links.steps[kind][axis];
    if (at < 0 || at >= links.extent[axis]) return -1;
    rest /= links.extent[axis];
    end += at * size;
    size *= links.extent[axis];
  }
  return end;
}

}  // namespace

double malis(const VoxelLinks& links, const double* affinity, const double* segments,
             VoxelPairs pairs, double* pull) {
  const int64_t voxels = links.voxels(), count = voxels * static_cast<int64_t>(links.steps.size());
  std::fill_n(pull, count, 0);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(affinity[i])) return std::numeric_limits<double>::quiet_NaN();
    if (end_of(links, i / voxels, i % voxels) >= 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return affinity[a] > affinity[b]; });
  Parts parts(voxels, segments);
  const double all = parts.all(pairs);
  if (all == 0) return 0;
  double loss = 0;
  for (const int64_t link : order) {
    const double connected =
        parts.join(link % voxels, end_of(links, link / voxels, link % voxels), pairs);
    const double missing = (pairs == VoxelPairs::of_one_segment ? 1 : 0) - affinity[link];
    loss += missing * missing * connected / all;
    pull[link] = missing * connected / all;
  }
  return loss;
}

}  // namespace crema
