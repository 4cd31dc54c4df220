// Gaussian filter in a space of a few dimensions on the permutohedral lattice (Adams, Baek and
// Davis 2010): values are spread over the corners of the simplex that each point lies in, blurred
// along the lattice's axes and read back. Points need no grid.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.h"
#include "device/context.h"

namespace crema {

// The tables of a lattice, in memory of the context's device. Corners are numbered in any order;
// there are at most as many as entries.
struct Lattice {
  static constexpr int kMostDimensions = 5;

  int dimensions = 0;
  int64_t points = 0;
  float* weights = nullptr;    // (points, dimensions + 1): the share of each corner in a point
  int32_t* corner = nullptr;   // likewise: its number. Each such pair is an entry.
  int32_t* count = nullptr;    // 1: of corners
  int32_t* entries = nullptr;  // those of the first corner, of the second, ..., each in their order
  int32_t* first = nullptr;    // entries + 1: where in `entries` those of a corner begin
  // (dimensions + 1, entries): the neighbours of a corner on each axis; -1: none
  int32_t *before = nullptr, *behind = nullptr;

  Lattice() = default;
  // Tables that begin at `memory`, 256 bytes aligned, and how long they are.
  Lattice(void* memory, int dimensions, int64_t points);
  static size_t bytes(int dimensions, int64_t points);

  CREMA_HD int64_t entry_count() const { return points * (dimensions + 1); }
};

// Bytes that make_lattice scribbles on.
size_t lattice_workspace(Context& context, int dimensions, int64_t points);
// features: (points, dimensions), in standard deviations of the filter.
void make_lattice(Context& context, const Lattice& lattice, const float* features, void* workspace);

// y = the filter of x, (points, planes) each; not normalized. transposed: the gradient of that,
// given y's as x. scratch: 2 * entries * planes. T: float or double.
template <typename T>
void lattice_filter(Context& context, const Lattice& lattice, const T* x, int64_t planes,
                    bool transposed, T* y, T* scratch);

}  // namespace crema
