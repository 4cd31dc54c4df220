// Numbers the corners of a lattice on a GPU. The slot of a corner in the hash table depends on the
// order of insertion, but entries are sorted stably by slot, so that those of a corner keep their
// order.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "base/ceil_div.h"
#include "device/aligned.h"
#include "device/parallel.h"
#include "kernels/crf/permutohedral_corners.h"

namespace crema {
namespace {

// Arrays with one value per entry, and the workspaces of sort and scan.
struct NumberingScratch {
  int32_t *slots, *positions, *sorted, *numbers;
  void* temporary;
  size_t temporary_bytes;
  NumberingScratch(void* workspace, int64_t entries) {
    const int64_t each = ceil_div(entries, 64) * 64;
    slots = static_cast<int32_t*>(workspace);
    positions = slots + each;
    sorted = positions + each;
    numbers = sorted + each;
    temporary = numbers + each;
    size_t of_sort = 0, of_scan = 0;
    const auto count = static_cast<int>(entries);
    check_cuda(cub::DeviceRadixSort::SortPairs(nullptr, of_sort, slots, sorted, positions,
                                               positions, count, 0, 31),
               "asking what sorting needs");
    check_cuda(cub::DeviceScan::InclusiveSum(nullptr, of_scan, numbers, numbers, count),
               "asking what sums need");
    temporary_bytes = of_sort > of_scan ? of_sort : of_scan;
  }
  size_t bytes() const {
    return static_cast<size_t>(static_cast<char*>(temporary) - reinterpret_cast<char*>(slots)) +
           aligned(temporary_bytes);
  }
};

struct InsertCorner {
  CornerTable table;
  int32_t *slot_of, *positions;
  __device__ void operator()(int64_t i) const {
    const auto entry = static_cast<int32_t>(i);
    const LatticeCorner corner = table.corners[entry];
    uint32_t slot = table.start(corner);
    while (true) {
      const int32_t there = atomicCAS(table.slots + slot, -1, entry);
      if (there == -1 || table.same(there, corner)) break;
      slot = table.next(slot);
    }
    slot_of[entry] = static_cast<int32_t>(slot);
    positions[entry] = entry;
  }
};

struct BeginsCorner {
  const int32_t* sorted;
  int32_t* begins;
  __device__ void operator()(int64_t i) const {
    begins[i] = i == 0 || sorted[i] != sorted[i - 1] ? 1 : 0;
  }
};

// numbers: how many corners have begun.
struct NumberCorner {
  Lattice lattice;
  const int32_t *sorted, *numbers;
  int64_t entries;
  __device__ void operator()(int64_t i) const {
    const int32_t number = numbers[i] - 1;
    lattice.corner[lattice.entries[i]] = number;
    if (i == 0 || sorted[i] != sorted[i - 1]) lattice.first[number] = static_cast<int32_t>(i);
    if (i == entries - 1) {
      *lattice.count = number + 1;
      lattice.first[number + 1] = static_cast<int32_t>(entries);
    }
  }
};

Refusal number_corners_workspace_gpu(Context&, int64_t entries, size_t& bytes) {
  bytes = NumberingScratch(nullptr, entries).bytes();
  return nullptr;
}

Refusal number_corners_gpu(Context& context, const Lattice& lattice, const CornerTable& table,
                           void* workspace) {
  const int64_t entries = lattice.entry_count();
  const auto count = static_cast<int>(entries);
  NumberingScratch s(workspace, entries);
  parallel_for(context, entries, InsertCorner{table, s.slots, s.positions});
  int bits = 1;
  while (table.last >> bits != 0) ++bits;
  check_cuda(cub::DeviceRadixSort::SortPairs(s.temporary, s.temporary_bytes, s.slots, s.sorted,
                                             s.positions, lattice.entries, count, 0, bits,
                                             context.gpu().stream),
             "sorting");
  parallel_for(context, entries, BeginsCorner{s.sorted, s.numbers});
  check_cuda(cub::DeviceScan::InclusiveSum(s.temporary, s.temporary_bytes, s.numbers, s.numbers,
                                           count, context.gpu().stream),
             "summing");
  parallel_for(context, entries, NumberCorner{lattice, s.sorted, s.numbers, entries});
  return nullptr;
}

REGISTER_KERNEL(number_corners_kernels, "cuda", RunsOn::gpu, 10, number_corners_gpu);
REGISTER_KERNEL(number_corners_workspace_kernels, "cuda", RunsOn::gpu, 10,
                number_corners_workspace_gpu);

}  // namespace

}  // namespace crema
