#include "kernels/permutohedral.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace crema {

PermutohedralLattice::PermutohedralLattice(const std::vector<float>& features, int dimensions)
    : dimensions_(dimensions), points_(static_cast<int64_t>(features.size()) / dimensions) {
  require(dimensions > 0 && dimensions <= kMostDimensions, "a lattice of ", dimensions,
          " dimensions: there may be ", kMostDimensions);
  const int64_t each = dimensions_ + 1;
  weights_.resize(points_ * each);
  std::vector<Corner> corners(points_ * each);
#pragma omp parallel for if (points_ > 1024)
  for (int64_t p = 0; p < points_; ++p)
    place(features.data() + p * dimensions_, weights_.data() + p * each, corners.data() + p * each);
  number_corners(corners);
  link_neighbours();
  list_points();
}

// The simplex that a point lies in: its corners and their shares of the point.
void PermutohedralLattice::place(const float* feature, float* weights, Corner* corners) const {
  const int d = dimensions_;
  // On the plane whose coordinates sum to 0, scaled so that the blur has a deviation of 1.
  float elevated[kMostDimensions + 1], sum = 0;
  const float size = std::sqrt(2.0f / 3.0f) * static_cast<float>(d + 1);
  for (int j = d; j > 0; --j) {
    const float scaled = feature[j - 1] * size / std::sqrt(static_cast<float>(j * (j + 1)));
    elevated[j] = sum - static_cast<float>(j) * scaled;
    sum += scaled;
  }
  elevated[0] = sum;
  // The nearest point whose coordinates are multiples of d + 1.
  int nearest[kMostDimensions + 1], rank[kMostDimensions + 1] = {}, excess = 0;
  for (int i = 0; i <= d; ++i) {
    const auto multiple = static_cast<int>(std::lround(elevated[i] / static_cast<float>(d + 1)));
    nearest[i] = multiple * (d + 1);
    excess += multiple;
  }
  const auto rest = [&](int i) { return elevated[i] - static_cast<float>(nearest[i]); };
  for (int i = 0; i < d; ++i) {
    for (int j = i + 1; j <= d; ++j) ++rank[rest(i) < rest(j) ? i : j];
  }
  // Back to the plane, by moving the coordinates that were rounded furthest.
  for (int i = 0; i <= d; ++i) {
    rank[i] += excess;
    const int turn = rank[i] < 0 ? d + 1 : rank[i] > d ? -(d + 1) : 0;
    rank[i] += turn;
    nearest[i] += turn;
  }
  float shares[kMostDimensions + 2] = {};
  for (int i = 0; i <= d; ++i) {
    const float share = rest(i) / static_cast<float>(d + 1);
    shares[d - rank[i]] += share;
    shares[d - rank[i] + 1] -= share;
  }
  shares[0] += 1 + shares[d + 1];
  for (int k = 0; k <= d; ++k) {
    weights[k] = shares[k];
    corners[k] = {};
    for (int i = 0; i < d; ++i) corners[k][i] = nearest[i] + (rank[i] <= d - k ? k : k - (d + 1));
  }
}

size_t PermutohedralLattice::slot_of(const Corner& corner) const {
  uint64_t hash = 0;
  for (const int32_t coordinate : corner) hash = mix(hash, static_cast<uint32_t>(coordinate));
  const size_t last = slots_.size() - 1;
  size_t slot = static_cast<size_t>(hash) & last;
  while (slots_[slot] >= 0 && corners_[slots_[slot]] != corner) slot = (slot + 1) & last;
  return slot;
}

int32_t PermutohedralLattice::find(const Corner& corner) const { return slots_[slot_of(corner)]; }

void PermutohedralLattice::number_corners(const std::vector<Corner>& of_points) {
  size_t size = 64;
  while (size < 2 * of_points.size()) size *= 2;
  slots_.assign(size, -1);
  corner_.resize(of_points.size());
  for (size_t i = 0; i < of_points.size(); ++i) {
    const size_t slot = slot_of(of_points[i]);
    if (slots_[slot] < 0) {
      slots_[slot] = static_cast<int32_t>(corners_.size());
      corners_.push_back(of_points[i]);
    }
    corner_[i] = slots_[slot];
  }
}

void PermutohedralLattice::link_neighbours() {
  const auto count = static_cast<int64_t>(corners_.size());
  const int axes = dimensions_ + 1;
  before_.resize(axes * count);
  behind_.resize(axes * count);
#pragma omp parallel for if (count > 1024)
  for (int64_t i = 0; i < axes * count; ++i) {
    const int axis = static_cast<int>(i / count);
    Corner before = corners_[i % count], behind = before;
    for (int k = 0; k < dimensions_; ++k) {
      before[k] -= k == axis ? -dimensions_ : 1;
      behind[k] += k == axis ? -dimensions_ : 1;
    }
    before_[i] = find(before);
    behind_[i] = find(behind);
  }
}

void PermutohedralLattice::list_points() {
  first_entry_.assign(corners_.size() + 1, 0);
  for (const int32_t number : corner_) ++first_entry_[number + 1];
  for (size_t i = 1; i < first_entry_.size(); ++i) first_entry_[i] += first_entry_[i - 1];
  std::vector<int64_t> next(first_entry_.begin(), first_entry_.end() - 1);
  entries_.resize(corner_.size());
  for (size_t i = 0; i < corner_.size(); ++i)
    entries_[next[corner_[i]]++] = static_cast<int64_t>(i);
}

template <typename T>
void PermutohedralLattice::filter(const T* x, int64_t planes, bool transposed, T* y) const {
  const auto count = static_cast<int64_t>(corners_.size());
  const int axes = dimensions_ + 1;
  std::vector<T> at_points(points_ * planes), at_corners(count * planes), blurred(count * planes);
#pragma omp parallel for
  for (int64_t p = 0; p < points_; ++p) {
    for (int64_t c = 0; c < planes; ++c) at_points[p * planes + c] = x[c * points_ + p];
  }
  // Each corner collects in the order of the points: the same sums on every number of threads.
#pragma omp parallel for schedule(dynamic, 256)
  for (int64_t i = 0; i < count; ++i) {
    T* const to = at_corners.data() + i * planes;
    for (int64_t e = first_entry_[i]; e < first_entry_[i + 1]; ++e) {
      const T share = static_cast<T>(weights_[entries_[e]]);
      const T* from = at_points.data() + entries_[e] / axes * planes;
      for (int64_t c = 0; c < planes; ++c) to[c] += share * from[c];
    }
  }
  for (int k = 0; k < axes; ++k) {
    const int axis = transposed ? axes - 1 - k : k;
    const int32_t *before = before_.data() + axis * count, *behind = behind_.data() + axis * count;
#pragma omp parallel for
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t c = 0; c < planes; ++c) {
        T sides = 0;
        if (before[i] >= 0) sides += at_corners[before[i] * planes + c];
        if (behind[i] >= 0) sides += at_corners[behind[i] * planes + c];
        blurred[i * planes + c] = at_corners[i * planes + c] + sides / 2;
      }
    }
    at_corners.swap(blurred);
  }
  const T scale = 1 / (1 + std::pow(T(2), T(-dimensions_)));
#pragma omp parallel for
  for (int64_t p = 0; p < points_; ++p) {
    for (int64_t c = 0; c < planes; ++c) {
      T sum = 0;
      for (int64_t e = p * axes; e < (p + 1) * axes; ++e)
        sum += static_cast<T>(weights_[e]) * at_corners[corner_[e] * planes + c];
      y[c * points_ + p] = scale * sum;
    }
  }
}

template void PermutohedralLattice::filter(const float*, int64_t, bool, float*) const;
template void PermutohedralLattice::filter(const double*, int64_t, bool, double*) const;

}  // namespace crema
