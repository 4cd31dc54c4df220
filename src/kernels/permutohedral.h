// Gaussian filter in a space of a few dimensions on the permutohedral lattice (Adams, Baek and
// Davis 2010): values are spread over the corners of the simplex that each point lies in, blurred
// along the lattice's axes and read back. Points need no grid. On the host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace crema {

class PermutohedralLattice {
 public:
  static constexpr int kMostDimensions = 5;

  // features: (points, dimensions), in standard deviations of the filter.
  PermutohedralLattice(const std::vector<float>& features, int dimensions);

  int64_t points() const { return points_; }
  // y[c] = the filter of x[c], planes of as many values as there are points; not normalized.
  // transposed: the gradient of that, given y's as x. T: float or double.
  template <typename T>
  void filter(const T* x, int64_t planes, bool transposed, T* y) const;

 private:
  using Corner = std::array<int32_t, kMostDimensions>;  // its coordinates but the last

  void place(const float* feature, float* weights, Corner* corners) const;
  void number_corners(const std::vector<Corner>& of_points);
  int32_t find(const Corner& corner) const;
  size_t slot_of(const Corner& corner) const;
  void link_neighbours();
  void list_points();

  int dimensions_;
  int64_t points_;
  std::vector<float> weights_;            // (points, dimensions + 1): share of each corner
  std::vector<int32_t> corner_;           // likewise: its number
  std::vector<Corner> corners_;           // by number
  std::vector<int32_t> slots_;            // a hash table of numbers; -1: empty
  std::vector<int32_t> before_, behind_;  // (axes, corners): neighbours; -1: none
  // The entries of corner_ that name a corner, corner after corner.
  std::vector<int64_t> first_entry_, entries_;
};

}  // namespace crema
