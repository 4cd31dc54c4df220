// Links between equal values of a list, so that what belongs to equal values is added up in list
// order, the same on every run. For .cu files only.
#pragma once

#include "base/ceil_div.h"
#include "device/parallel.h"
#include "kernels/labels/labels.h"

namespace crema {

// For several lists of `extent` values each: for each value the index of the next equal one in its
// list, or -1, and whether it is the first of its kind. Only integers from 0 to kinds - 1 count;
// others are linked to none. On a GPU one warp searches for each value.
template <typename T>
struct EqualLinks {
  const T* values;
  int64_t extent, kinds;
  int32_t *next, *first;
  CREMA_HD void operator()(int64_t i) const {
    const T* list = values + i / extent * extent;
    const int64_t at = i % extent;
    next[i] = -1;
    first[i] = 0;
    if (!is_class(list[at], kinds)) return;
    int64_t before = at - 1, after = at + 1;
    while (before >= 0 && list[before] != list[at]) --before;
    while (after < extent && list[after] != list[at]) ++after;
    if (after < extent) next[i] = static_cast<int32_t>(after);
    first[i] = before < 0;
  }
};

#ifdef __CUDACC__
template <typename T>
__global__ void search_equal(int64_t count, EqualLinks<T> links) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (i >= count) return;
  const T* const list = links.values + i / links.extent * links.extent;
  const int64_t at = i % links.extent;
  const T own = list[at];
  const bool counts = is_class(own, links.kinds);
  // The index of the first equal value in [begin, end), or -1.
  const auto find = [&](int64_t begin, int64_t end) -> int64_t {
    constexpr int kAtOnce = 4;
    for (; begin < end; begin += 32 * kAtOnce) {
      bool equal[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int64_t j = begin + k * 32 + lane;
        equal[k] = j < end && list[j] == own;
      }
      int64_t found = -1;
#pragma unroll
      for (int k = kAtOnce - 1; k >= 0; --k) {
        const unsigned lanes = __ballot_sync(0xffffffffu, equal[k]);
        if (lanes) found = begin + k * 32 + __ffs(static_cast<int>(lanes)) - 1;
      }
      if (found >= 0) return found;
    }
    return -1;
  };
  const int64_t next = counts ? find(at + 1, links.extent) : -1;
  const bool first = counts && find(0, at) < 0;
  if (lane > 0) return;
  links.next[i] = static_cast<int32_t>(next);
  links.first[i] = first;
}
#endif

// Fills links.next and links.first for `lists` lists, one after another in memory.
template <typename T>
void link_equal(Context& context, int64_t lists, const EqualLinks<T>& links) {
  const int64_t count = lists * links.extent;
#ifdef __CUDACC__
  if (context.device() == Device::gpu && count > 0) {
    const auto blocks = static_cast<unsigned>(ceil_div(count, 4));
    return launch(context.gpu(), search_equal<T>, {blocks, 128}, count, links);
  }
#endif
  parallel_for(context, count, links, 64);
}

}  // namespace crema
