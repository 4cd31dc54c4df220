#include "kernels/crf/permutohedral.h"

#include <algorithm>
#include <vector>

#include "base/ceil_div.h"
#include "base/error.h"
#include "device/aligned.h"
#include "device/memory.h"
#include "kernels/crf/permutohedral_corners.h"
#include "kernels/pointwise/pointwise.h"

namespace crema {
namespace {

// Consecutive parts of an allocation.
struct LatticeParts {
  char* at;
  template <typename T>
  T* next(int64_t count) {
    char* const part = at;
    at += aligned(count * sizeof(T));
    return reinterpret_cast<T*>(part);
  }
};

// The workspace of make_lattice().
struct LatticeScratch {
  LatticeCorner* corners;
  int32_t* slots;
  void* rest;
  LatticeScratch(void* workspace, int64_t entries) {
    LatticeParts parts{static_cast<char*>(workspace)};
    corners = parts.next<LatticeCorner>(entries);
    slots = parts.next<int32_t>(CornerTable::slot_count(entries));
    rest = parts.at;
  }
};

struct EmptySlot {
  int32_t* slots;
  CREMA_HD void operator()(int64_t i) const { slots[i] = -1; }
};

Refusal number_corners_cpu(Context&, const Lattice& lattice, const CornerTable& table,
                           void* /*workspace*/) {
  const int64_t entries = lattice.entry_count();
  int32_t count = 0;
  std::fill_n(lattice.first, entries + 1, 0);
  for (int64_t e = 0; e < entries; ++e) {
    int32_t& slot = table.slots[table.find(table.corners[e])];
    const bool known = slot >= 0;
    if (!known) slot = static_cast<int32_t>(e);
    lattice.corner[e] = known ? lattice.corner[slot] : count++;
    ++lattice.first[lattice.corner[e] + 1];
  }
  *lattice.count = count;
  for (int32_t i = 0; i < count; ++i) lattice.first[i + 1] += lattice.first[i];
  std::vector<int32_t> next(lattice.first, lattice.first + count);
  for (int64_t e = 0; e < entries; ++e)
    lattice.entries[next[lattice.corner[e]]++] = static_cast<int32_t>(e);
  return nullptr;
}

Refusal no_workspace(Context&, int64_t /*entries*/, size_t& bytes) {
  bytes = 0;
  return nullptr;
}

REGISTER_KERNEL(number_corners_kernels, "plain", RunsOn::cpu, 0, number_corners_cpu);
REGISTER_KERNEL(number_corners_workspace_kernels, "plain", RunsOn::cpu, 0, no_workspace);

struct LinkNeighbors {
  Lattice lattice;
  CornerTable table;
  CREMA_HD void operator()(int64_t axis, int64_t i) const {
    if (i >= *lattice.count) return;
    const int d = lattice.dimensions;
    LatticeCorner previous = table.corners[lattice.entries[lattice.first[i]]], next = previous;
    for (int k = 0; k < Lattice::kMaxDimensions; ++k) {
      const int step = k >= d ? 0 : k == axis ? -d : 1;
      previous.at[k] -= step;
      next.at[k] += step;
    }
    const int64_t at = axis * lattice.entry_count() + i;
    lattice.previous[at] = number_of(previous);
    lattice.next[at] = number_of(next);
  }
  CREMA_HD int32_t number_of(const LatticeCorner& corner) const {
    const int32_t entry = table.slots[table.find(corner)];
    return entry < 0 ? -1 : lattice.corner[entry];
  }
};

constexpr int kPlanes = 8;  // that are filtered at a time

// Each corner gathers in the order of the points: the same sums on every run.
template <typename T>
struct Splat {
  Lattice lattice;
  int64_t planes;
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t i, int64_t group) const {
    if (i >= *lattice.count) return;
    const int64_t plane = group * kPlanes, rest = planes - plane;
    const int each = lattice.dimensions + 1;
    T sums[kPlanes] = {};
    for (int32_t at = lattice.first[i]; at < lattice.first[i + 1]; ++at) {
      const int32_t entry = lattice.entries[at];
      const T weight = static_cast<T>(lattice.weights[entry]);
      const T* from = x + entry / each * planes + plane;
      for (int k = 0; k < kPlanes; ++k) sums[k] += k < rest ? weight * from[k] : T(0);
    }
    for (int k = 0; k < kPlanes; ++k) {
      if (k < rest) y[i * planes + plane + k] = sums[k];
    }
  }
};

template <typename T>
struct Blur {
  Lattice lattice;
  int64_t planes;
  int axis;
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t i, int64_t plane) const {
    if (i >= *lattice.count) return;
    const int64_t at = axis * lattice.entry_count() + i;
    const int32_t previous = lattice.previous[at], next = lattice.next[at];
    const T sides = (previous >= 0 ? x[previous * planes + plane] : T(0)) +
                    (next >= 0 ? x[next * planes + plane] : T(0));
    y[i * planes + plane] = x[i * planes + plane] + sides / 2;
  }
};

template <typename T>
struct Slice {
  Lattice lattice;
  int64_t planes;
  T scale;
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t p, int64_t plane) const {
    const int each = lattice.dimensions + 1;
    T sum = 0;
    for (int64_t e = p * each; e < (p + 1) * each; ++e)
      sum += static_cast<T>(lattice.weights[e]) * x[lattice.corner[e] * planes + plane];
    y[p * planes + plane] = scale * sum;
  }
};

// The number of corners to iterate over: on a GPU the upper bound, as the host does not know the
// number.
int64_t corners_of(Context& context, const Lattice& lattice) {
  return context.device() == Device::cpu ? *lattice.count : lattice.entry_count();
}

}  // namespace

constinit decltype(number_corners_kernels) number_corners_kernels(
    "the numbering of a lattice's corners");
constinit decltype(number_corners_workspace_kernels) number_corners_workspace_kernels(
    "the workspace for numbering a lattice's corners");

Lattice::Lattice(void* memory, int dimensions, int64_t points)
    : dimensions(dimensions), points(points) {
  LatticeParts parts{static_cast<char*>(memory)};
  const int64_t all = entry_count();
  weights = parts.next<float>(all);
  corner = parts.next<int32_t>(all);
  count = parts.next<int32_t>(1);
  entries = parts.next<int32_t>(all);
  first = parts.next<int32_t>(all + 1);
  previous = parts.next<int32_t>((dimensions + 1) * all);
  next = parts.next<int32_t>((dimensions + 1) * all);
}

size_t Lattice::bytes(int dimensions, int64_t points) {
  const int64_t all = points * (dimensions + 1);
  return 3 * aligned(all * sizeof(int32_t)) + aligned(sizeof(int32_t)) +
         aligned((all + 1) * sizeof(int32_t)) +
         2 * aligned((dimensions + 1) * all * sizeof(int32_t));
}

size_t lattice_workspace(Context& context, int dimensions, int64_t points) {
  const int64_t entries = points * (dimensions + 1);
  size_t numbering = 0;
  number_corners_workspace_kernels.run(context, entries, numbering);
  return aligned(entries * sizeof(LatticeCorner)) +
         aligned(CornerTable::slot_count(entries) * sizeof(int32_t)) + numbering;
}

void make_lattice(Context& context, const Lattice& lattice, const float* features,
                  void* workspace) {
  const int dimensions = lattice.dimensions;
  require(dimensions > 0 && dimensions <= Lattice::kMaxDimensions, "a lattice of ", dimensions,
          " dimensions: there may be ", Lattice::kMaxDimensions);
  require(lattice.entry_count() <= INT32_MAX / 2, "a lattice of ", lattice.points,
          " points: its corners are counted in 32 bits");
  const int64_t entries = lattice.entry_count(), slots = CornerTable::slot_count(entries);
  const LatticeScratch scratch(workspace, entries);
  const CornerTable table{scratch.corners, scratch.slots, static_cast<uint32_t>(slots - 1)};
  parallel_for(context, lattice.points, PlaceInLattice{lattice, features, scratch.corners}, 256);
  parallel_for(context, slots, EmptySlot{table.slots});
  number_corners_kernels.run(context, lattice, table, scratch.rest);
  parallel_rows(context, dimensions + 1, corners_of(context, lattice),
                LinkNeighbors{lattice, table});
}

template <typename T>
void lattice_filter(Context& context, const Lattice& lattice, const T* x, int64_t planes,
                    bool transposed, T* y, T* scratch) {
  const int64_t corners = corners_of(context, lattice);
  const int axes = lattice.dimensions + 1;
  T *now = scratch, *next = scratch + lattice.entry_count() * planes;
  parallel_rows(context, corners, ceil_div(planes, kPlanes), Splat<T>{lattice, planes, x, now});
  for (int k = 0; k < axes; ++k) {
    const int axis = transposed ? axes - 1 - k : k;
    parallel_rows(context, corners, planes, Blur<T>{lattice, planes, axis, now, next});
    std::swap(now, next);
  }
  // The inverse of the blur's gain (Adams et al.).
  const T scale = static_cast<T>(1 / (1 + std::pow(2.0, -lattice.dimensions)));
  parallel_rows(context, lattice.points, planes, Slice<T>{lattice, planes, scale, now, y});
}

template void lattice_filter(Context&, const Lattice&, const float*, int64_t, bool, float*, float*);
template void lattice_filter(Context&, const Lattice&, const double*, int64_t, bool, double*,
                             double*);

}  // namespace crema
