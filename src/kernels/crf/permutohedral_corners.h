// Which corners of the lattice points lie between, and finding a corner again: what numbering them
// has in common on all devices. For .cu files only, as device/parallel.h.
#pragma once

#include <cmath>

#include "base/random.h"
#include "kernels/crf/permutohedral.h"

namespace crema {

// The coordinates but the last of a corner.
struct LatticeCorner {
  int32_t at[Lattice::kMostDimensions];
};

// The simplex that a point lies in: its corners and their shares of the point. In double, so that
// all devices find the same.
struct PlaceInLattice {
  Lattice lattice;
  const float* features;
  LatticeCorner* corners;  // of each entry

  CREMA_HD void operator()(int64_t p) const {
    constexpr int kMost = Lattice::kMostDimensions;
    const int d = lattice.dimensions;
    // On the plane whose coordinates sum to 0, scaled so that the blur has a deviation of 1.
    double elevated[kMost + 1] = {}, sum = 0;
    const double size = sqrt(2.0 / 3.0) * (d + 1);
    for (int j = kMost; j > 0; --j) {
      if (j > d) continue;
      const double scaled = features[p * d + j - 1] * size / sqrt(static_cast<double>(j * (j + 1)));
      elevated[j] = sum - j * scaled;
      sum += scaled;
    }
    elevated[0] = sum;
    // A point that is nowhere, or too far away for the corners' numbers, makes nan of what it
    // meets.
    bool somewhere = true;
    for (int i = 0; i <= d; ++i) somewhere = somewhere && fabs(elevated[i]) < 1e8;
    for (int i = 0; i <= d; ++i) elevated[i] = somewhere ? elevated[i] : 0;
    // The nearest point whose coordinates are multiples of d + 1.
    int nearest[kMost + 1] = {}, rank[kMost + 1] = {}, excess = 0;
    for (int i = 0; i <= d; ++i) {
      const auto multiple = static_cast<int>(floor(elevated[i] / (d + 1) + 0.5));
      nearest[i] = multiple * (d + 1);
      excess += multiple;
    }
    const auto rest = [&](int i) { return elevated[i] - nearest[i]; };
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
    double shares[kMost + 2] = {};
    for (int i = 0; i <= d; ++i) {
      const double share = rest(i) / (d + 1);
      shares[d - rank[i]] += share;
      shares[d - rank[i] + 1] -= share;
    }
    shares[0] += 1 + shares[d + 1];
    for (int k = 0; k <= d; ++k) {
      lattice.weights[p * (d + 1) + k] = somewhere ? static_cast<float>(shares[k]) : NAN;
      LatticeCorner corner{};
      for (int i = 0; i < d; ++i) corner.at[i] = nearest[i] + (rank[i] <= d - k ? k : k - (d + 1));
      corners[p * (d + 1) + k] = corner;
    }
  }
};

// A hash table of corners. Its slots have an entry that names the corner, or -1.
struct CornerTable {
  const LatticeCorner* corners;  // of each entry
  int32_t* slots;
  uint32_t last;  // slots less one; their number is a power of two

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
    for (int k = 0; k < Lattice::kMostDimensions; ++k)
      same = same && corners[entry].at[k] == corner.at[k];
    return same;
  }
  // The slot of a corner, or an empty one.
  CREMA_HD uint32_t find(const LatticeCorner& corner) const {
    uint32_t slot = start(corner);
    while (slots[slot] >= 0 && !same(slots[slot], corner)) slot = next(slot);
    return slot;
  }
};

// Fills corner, count, entries and first of a lattice on a GPU, and the slots, which are empty.
size_t number_corners_gpu_workspace(int64_t entries);
void number_corners_gpu(Context& context, const Lattice& lattice, const CornerTable& table,
                        void* workspace);

}  // namespace crema
