// Maximin affinity learning of segments (Turaga et al., 2009): pairs of voxels are as strongly
// connected as the weakest link of the best path between them, which is a link of the maximal
// spanning tree.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace crema {

// Links of a volume: from each voxel to the one `step` away, for each kind of link.
struct VoxelLinks {
  std::array<int64_t, 3> extent;              // planes, rows, columns
  std::vector<std::array<int64_t, 3>> steps;  // by kind

  int64_t voxels() const { return extent[0] * extent[1] * extent[2]; }
};

enum class VoxelPairs { of_one_segment, of_different_segments };

// The mean over all pairs of (target - affinity of the pair)^2, where target is 1 for pairs of one
// segment and 0 for others, and (target - affinity) * share of the pairs for each link: `pull` is
// overwritten, like the affinities (kinds, voxels). Segments: a number a voxel, 0: of none. Equal
// affinities count in their order; no pairs: 0.
double malis(const VoxelLinks& links, const double* affinity, const double* segments,
             VoxelPairs pairs, double* pull);

}  // namespace crema
