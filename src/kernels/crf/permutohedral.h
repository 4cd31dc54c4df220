// Gaussian filter in a space of a few dimensions on the permutohedral lattice (Adams, Baek and
// Davis 2010): splats values onto the corners of the simplex around each point, blurs along the
// lattice's axes and slices them back. Points need no grid.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.h"
#include "device/context.h"

namespace crema {

// The tables of a lattice, in memory of the context's device. Corners are numbered in arbitrary
// order; there are at most as many as entries.
struct Lattice {
  static constexpr int kMaxDimensions = 5;

  int dimensions = 0;
  int64_t points = 0;
  float* weights = nullptr;    // (points, dimensions + 1): barycentric weights of each point
  int32_t* corner = nullptr;   // the same shape: indices of the corners; each is an entry
  int32_t* count = nullptr;    // one value: the number of corners
  int32_t* entries = nullptr;  // entries of the first corner, of the second, ..., each in order
  int32_t* first = nullptr;    // entries + 1: where the entries of each corner begin in `entries`
  // (dimensions + 1, entries): a corner's neighbors along each axis; -1: none
  int32_t *previous = nullptr, *next = nullptr;

  Lattice() = default;
  // Tables that begin at `memory`, aligned to 256 bytes, and their size.
  Lattice(void* memory, int dimensions, int64_t points);
  static size_t bytes(int dimensions, int64_t points);

  CREMA_HD int64_t entry_count() const { return points * (dimensions + 1); }
};

// Bytes of workspace for make_lattice().
size_t lattice_workspace(Context& context, int dimensions, int64_t points);
// features: (points, dimensions), in units of the filter's standard deviation.
void make_lattice(Context& context, const Lattice& lattice, const float* features, void* workspace);

// y = the filter of x, (points, planes) each; not normalized. transposed: computes the gradient,
// with dy as x. scratch: 2 * entries * planes. T: float or double.
template <typename T>
void lattice_filter(Context& context, const Lattice& lattice, const T* x, int64_t planes,
                    bool transposed, T* y, T* scratch);

}  // namespace crema
