// Top-k thresholds of many lists, by rank (kernels/core/rank.h): entries that reach the threshold
// are among the best. For .cu files only, like device/parallel.h.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "device/parallel.h"
#ifdef __CUDACC__
#include "kernels/core/best_ranks.cuh"
#include "kernels/core/warp.cuh"
#endif

namespace crema {

#ifdef __CUDACC__
// One block per list.
template <typename Lists>
__global__ void __launch_bounds__(1024)
    find_min_ranks(int64_t count, Lists lists, uint64_t* minimum) {
  const int64_t list = blockIdx.x, wanted = lists.wanted(list);
  const auto rank_at = [&](int i) { return lists.rank(list, i); };
  const int all = static_cast<int>(count);
  int there = 0;
  for (int i = threadIdx.x; i < all; i += blockDim.x) there += rank_at(i) != 0;
  there = block_all(there, Plus());
  uint64_t found = wanted > 0 ? 1 : ~uint64_t{0};
  if (wanted > 0 && wanted < there) found = min_of_best(all, static_cast<int>(wanted), rank_at);
  if (threadIdx.x == 0) minimum[list] = found;
}
#endif

// Sets minimum[list] so that exactly the best lists.wanted(list) of lists.rank(list, i), i < count,
// reach it; all do if there are fewer. A rank of 0 is no entry; the others of a list must be
// distinct.
template <typename Lists>
void min_ranks(Context& context, int64_t list_count, int64_t count, const Lists& lists,
               uint64_t* minimum) {
  if (list_count == 0) return;
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    return launch(context.gpu(), find_min_ranks<Lists>, {static_cast<unsigned>(list_count), 1024},
                  count, lists, minimum);
  }
#endif
  (void)context;
#pragma omp parallel for schedule(dynamic)
  for (int64_t list = 0; list < list_count; ++list) {
    const int64_t wanted = lists.wanted(list);
    std::vector<uint64_t> ranks;
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t rank = lists.rank(list, i);
      if (rank != 0) ranks.push_back(rank);
    }
    minimum[list] = wanted > 0 ? 1 : ~uint64_t{0};
    if (wanted <= 0 || wanted >= static_cast<int64_t>(ranks.size())) continue;
    const auto last = ranks.begin() + (wanted - 1);
    std::nth_element(ranks.begin(), last, ranks.end(), std::greater<>());
    minimum[list] = *last;
  }
}

}  // namespace crema
