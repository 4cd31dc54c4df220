// The enclosing simplex of a point, and the lookup of corners in a hash table: the part of
// numbering corners that all devices share. For .cu files only, like device/parallel.h.
#pragma once

#include <cmath>

#include "base/random.h"
#include "kernels/core/kernel_registry.h"
#include "kernels/crf/permutohedral.h"

namespace crema {

// The coordinates of a corner without the last, which is minus their sum.
struct LatticeCorner {
  int32_t at[Lattice::kMaxDimensions];
};

// The simplex around a point: its corners and their barycentric weights. In double, so that all
// devices find the same.
struct PlaceInLattice {
  Lattice lattice;
  const float* features;
  LatticeCorner* corners;  // of each entry

  CREMA_HD void operator()(int64_t p) const {
    constexpr int kMax = Lattice::kMaxDimensions;
    const int d = lattice.dimensions;
    // Embeds the point in the plane whose coordinates sum to 0, scaled so that the blur has a
    // standard deviation of 1.
    double elevated[kMax + 1] = {}, sum = 0;
    const double size = sqrt(2.0 / 3.0) * (d + 1);
    for (int j = kMax; j > 0; --j) {
      if (j > d) continue;
      const double scaled = features[p * d + j - 1] * size / sqrt(static_cast<double>(j * (j + 1)));
      elevated[j] = sum - j * scaled;
      sum += scaled;
    }
    elevated[0] = sum;
    // A point with a coordinate that is NaN, or too large for the corners' integers, gets NaN
    // weights.
    bool somewhere = true;
    for (int i = 0; i <= d; ++i) somewhere = somewhere && fabs(elevated[i]) < 1e8;
    for (int i = 0; i <= d; ++i) elevated[i] = somewhere ? elevated[i] : 0;
    // The nearest point whose coordinates are multiples of d + 1.
    int nearest[kMax + 1] = {}, rank[kMax + 1] = {}, excess = 0;
    for (int i = 0; i <= d; ++i) {
      const auto multiple = static_cast<int>(floor(elevated[i] / (d + 1) + 0.5));
      nearest[i] = multiple * (d + 1);
      excess += multiple;
    }
    const auto rest = [&](int i) { return elevated[i] - nearest[i]; };
    for (int i = 0; i < d; ++i) {
      for (int j = i + 1; j <= d; ++j) ++rank[rest(i) < rest(j) ? i : j];
    }
    // Back onto the plane, by changing the coordinates that were rounded furthest.
    for (int i = 0; i <= d; ++i) {
      rank[i] += excess;
      const int turn = rank[i] < 0 ? d + 1 : rank[i] > d ? -(d + 1) : 0;
      rank[i] += turn;
      nearest[i] += turn;
    }
    double barycentric[kMax + 2] = {};
    for (int i = 0; i <= d; ++i) {
      const double part = rest(i) / (d + 1);
      barycentric[d - rank[i]] += part;
      barycentric[d - rank[i] + 1] -= part;
    }
    barycentric[0] += 1 + barycentric[d + 1];
    for (int k = 0; k <= d; ++k) {
      lattice.weights[p * (d + 1) + k] = somewhere ? static_cast<float>(barycentric[k]) : NAN;
      LatticeCorner corner{};
      for (int i = 0; i < d; ++i) corner.at[i] = nearest[i] + (rank[i] <= d - k ? k : k - (d + 1));
      corners[p * (d + 1) + k] = corner;
    }
  }
};

// A hash table of corners. A slot holds an entry that has the corner, or -1.
struct CornerTable {
  const LatticeCorner* corners;  // of each entry
  int32_t* slots;
  uint32_t last;  // slots minus one; their number is a power of two

  static int64_t slot_count(int64_t entries) {
    int64_t count = 64;
    while (count < 2 * entries) count *= 2;
    return count;
  }
  CREMA_HD uint32_t start(const LatticeCorner& corner) const {
    uint64_t hash = 0;
    for (const int32_t coordinate : corner.at) hash = mix(hash, static_cast<uint32_t>(coordinate));
    return static_cast<uint32_t>(hash) & last;
  }
  CREMA_HD uint32_t next(uint32_t slot) const { return (slot + 1) & last; }
  CREMA_HD bool same(int32_t entry, const LatticeCorner& corner) const {
    bool same = true;
    for (int k = 0; k < Lattice::kMaxDimensions; ++k)
      same = same && corners[entry].at[k] == corner.at[k];
    return same;
  }
  // The slot of a corner, or a free one.
  CREMA_HD uint32_t find(const LatticeCorner& corner) const {
    uint32_t slot = start(corner);
    while (slots[slot] >= 0 && !same(slots[slot], corner)) slot = next(slot);
    return slot;
  }
};

// Fills corner, count, entries and first of a lattice, and the slots, which must be empty. The last
// argument is a workspace.
extern KernelFunctions<const Lattice&, const CornerTable&, void*> number_corners_kernels;
// Sets `bytes` to those of the workspace for so many entries.
extern KernelFunctions<int64_t, size_t&> number_corners_workspace_kernels;

}  // namespace crema
