// Top-k thresholds of many lists of sort keys (kernels/reduce/sort_key.h): entries whose keys reach
// the threshold are among the k best. For .cu files only, like device/parallel.h.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "device/parallel.h"
#include "kernels/core/threads.h"
#ifdef __CUDACC__
#include "kernels/core/warp.cuh"
#include "kernels/reduce/select_keys.cuh"
#endif

namespace crema {

#ifdef __CUDACC__
// One block per list.
template <typename Lists>
__global__ void __launch_bounds__(1024)
    find_top_k_thresholds(int64_t count, Lists lists, uint64_t* thresholds) {
  const int64_t list = blockIdx.x, k = lists.k(list);
  const auto key_at = [&](int i) { return lists.key(list, i); };
  const int all = static_cast<int>(count);
  int entries = 0;
  for (int i = threadIdx.x; i < all; i += blockDim.x) entries += key_at(i) != 0;
  entries = block_all(entries, Plus());
  uint64_t threshold = k > 0 ? 1 : ~uint64_t{0};
  if (k > 0 && k < entries) threshold = select_kth_key(all, static_cast<int>(k), key_at);
  if (threadIdx.x == 0) thresholds[list] = threshold;
}
#endif

// Sets thresholds[list] so that exactly the lists.k(list) highest of lists.key(list, i), i < count,
// reach it; all do if there are fewer. A key of 0 is no entry; the others of a list must be
// distinct.
template <typename Lists>
void top_k_thresholds(Context& context, int64_t list_count, int64_t count, const Lists& lists,
                      uint64_t* thresholds) {
  if (list_count == 0) return;
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    return launch(context.gpu(), find_top_k_thresholds<Lists>,
                  {static_cast<unsigned>(list_count), 1024}, count, lists, thresholds);
  }
#endif
  (void)context;
  RegionError error;
#pragma omp parallel for schedule(dynamic)
  for (int64_t list = 0; list < list_count; ++list) {
    error.run([&] {
      const int64_t k = lists.k(list);
      std::vector<uint64_t> keys;
      for (int64_t i = 0; i < count; ++i) {
        const uint64_t key = lists.key(list, i);
        if (key != 0) keys.push_back(key);
      }
      thresholds[list] = k > 0 ? 1 : ~uint64_t{0};
      if (k <= 0 || k >= static_cast<int64_t>(keys.size())) return;
      const auto kth = keys.begin() + (k - 1);
      std::nth_element(keys.begin(), kth, keys.end(), std::greater<>());
      thresholds[list] = *kth;
    });
  }
  error.rethrow();
}

}  // namespace crema
