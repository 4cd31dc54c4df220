// Maximin affinity learning of segments (Turaga et al., 2009): the affinity of a pair of voxels is
// the weakest link of the best path between them, which is a link of the maximum spanning tree.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace crema {

// Links of a volume: for each kind of link, from each voxel to the one `step` away.
struct VoxelLinks {
  std::array<int64_t, 3> extent;              // planes, rows, columns
  std::vector<std::array<int64_t, 3>> steps;  // by kind

  int64_t voxels() const { return extent[0] * extent[1] * extent[2]; }
};

enum class VoxelPairs { of_one_segment, of_different_segments };

// Returns the mean over all pairs of (target - affinity of the pair)^2, where target is 1 for pairs
// of one segment and otherwise 0. `pull` is overwritten with (target - affinity) * fraction of the
// pairs for each link; like the affinities it is (kinds, voxels). Segments: one value per voxel, 0:
// none. Ties between affinities are broken by index; without pairs the result is 0.
double malis(const VoxelLinks& links, const double* affinity, const double* segments,
             VoxelPairs pairs, double* pull);

}  // namespace crema
