// One thread block per image; in the first step one per object.
#include "device/launch.h"
#include "kernels/core/warp.cuh"
#include "kernels/reduce/select_keys.cuh"
#include "kernels/reduce/sort_key.h"
#include "layers/detection/multibox_device.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int kImageThreads = 1024, kObjectThreads = 512;
constexpr float kOverlapsNot = 1e-6f;  // smaller overlaps count as none

struct Least {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};

template <typename T>
__device__ __host__ inline Box corners_at(const T* at) {
  return {static_cast<float>(at[0]), static_cast<float>(at[1]), static_cast<float>(at[2]),
          static_cast<float>(at[3])};
}

template <typename T>
struct DeviceMatcher {
  DeviceMatching m;
  const T *boxes, *rows;

  __device__ bool is_known(T label) const {
    return is_class(label, m.classes) && label != static_cast<T>(m.background);
  }
  __device__ bool is_of(int64_t image, int64_t row) const {
    const T* object = rows + row * 8;
    return static_cast<int64_t>(object[0]) == image && is_known(object[1]) &&
           (m.use_difficult || object[7] == 0);
  }

  // Writes the rows of the image's objects to `among`, in order; returns their number.
  __device__ int collect(int64_t image, int32_t* among) const {
    __shared__ int count;
    if (threadIdx.x < 32) {
      int found = 0;
      for (int64_t first = 0; first < m.objects; first += 32) {
        const int64_t row = first + threadIdx.x;
        const bool own = row < m.objects && is_of(image, row);
        if (row < m.objects && !own) note_unknown(image, row);
        const unsigned of_warp = __ballot_sync(0xffffffffu, own);
        if (own) {
          const unsigned before = of_warp & ((1u << threadIdx.x) - 1);
          among[found + __popc(before)] = static_cast<int32_t>(row);
        }
        found += __popc(of_warp);
      }
      if (threadIdx.x == 0) count = found;
    }
    __syncthreads();
    return count;
  }

  // Records a row of the image whose label is out of range.
  __device__ void note_unknown(int64_t image, int64_t row) const {
    const T* object = rows + row * 8;
    if (static_cast<int64_t>(object[0]) == image && !is_known(object[1]))
      m.note.write(row, object[1]);
  }

  __device__ bool is_ignored(int64_t prior) const {
    const Box b = corners_at(boxes + prior * 4);
    return m.rule.ignore_crossing && (b.x1 < 0 || b.x1 > 1 || b.y1 < 0 || b.y1 > 1 || b.x2 < 0 ||
                                      b.x2 > 1 || b.y2 < 0 || b.y2 > 1);
  }

  // One block per object: its overlap with each prior, and the sort key of the prior that it
  // overlaps most.
  __device__ void compare(int64_t row) const {
    float* const overlaps = m.overlaps + row * m.priors;
    const Box object = corners_at(rows + row * 8 + 3);
    uint64_t best = 0;
    for (int64_t i = threadIdx.x; i < m.priors; i += blockDim.x) {
      const float share = overlap(corners_at(boxes + i * 4), object);
      overlaps[i] = share;
      const uint64_t key = share > kOverlapsNot && !is_ignored(i) ? sort_key(share, i) : 0;
      best = key > best ? key : best;
    }
    best = block_all(best, Larger());
    if (threadIdx.x == 0) m.first_best[row] = best;
  }

  // Sort key of the unmatched prior that overlaps an object most; 0: none. All threads get it.
  __device__ uint64_t best_for(const float* overlaps, const int32_t* matches) const {
    uint64_t best = 0;
    for (int64_t i = threadIdx.x; i < m.priors; i += kImageThreads) {
      const float share = overlaps[i];
      if (matches[i] != kNoObject || !(share > kOverlapsNot)) continue;
      const uint64_t key = sort_key(share, i);
      best = key > best ? key : best;
    }
    return block_all(best, Larger());
  }

  // Each object gets the prior that overlaps it most, greedily from the best pair on.
  __device__ void match_best(int count, const int32_t* among, uint64_t* best, int32_t* matches,
                             float* max_overlap) const {
    for (int k = threadIdx.x; k < count; k += kImageThreads) best[k] = m.first_best[among[k]];
    __syncthreads();
    uint64_t pair = 1;
#pragma unroll 1
    for (int round = 0; round < count && pair != 0; ++round) {
      pair = 0;
      for (int k = threadIdx.x; k < count; k += kImageThreads)
        pair = best[k] > pair ? best[k] : pair;
      pair = block_all(pair, Larger());
      int object = count;
      for (int k = threadIdx.x; k < count; k += kImageThreads)
        object = best[k] == pair && k < object ? k : object;
      object = block_all(object, Least());
      const int32_t prior = position_of_key(pair);
      if (threadIdx.x == 0 && pair != 0) {
        matches[prior] = object;
        max_overlap[prior] = score_of_key(pair);
        best[object] = 0;
      }
      __syncthreads();
      for (int k = 0; k < count && pair != 0; ++k) {
        if (best[k] == 0 || position_of_key(best[k]) != prior) continue;
        const uint64_t key = best_for(m.overlaps + among[k] * m.priors, matches);
        if (threadIdx.x == 0) best[k] = key;
      }
      __syncthreads();
    }
  }

  // The object that an unmatched prior overlaps most, by at least the threshold.
  __device__ int over_threshold(int64_t prior, int count, const int32_t* among,
                                float* max_overlap) const {
    float maximum = -1;
    int object = kNoObject;
    for (int k = 0; k < count; ++k) {
      const float share = m.overlaps[among[k] * m.priors + prior];
      if (share <= kOverlapsNot || share < m.rule.threshold || share <= maximum) continue;
      maximum = share;
      object = k;
    }
    if (object != kNoObject) *max_overlap = maximum;
    return object;
  }

  __device__ void run(int64_t image) const {
    int32_t *const among = m.among + image * m.objects,
                   *const matches = m.matches + image * m.priors,
                   *const labels = m.labels + image * m.priors;
    float* const max_overlap = m.max_overlap + image * m.priors;
    const int count = collect(image, among);
    for (int64_t i = threadIdx.x; i < m.priors; i += kImageThreads) {
      const bool ignored = count > 0 && is_ignored(i);
      float maximum = 0;
      for (int k = 0; k < count && !ignored; ++k) {
        const float share = m.overlaps[among[k] * m.priors + i];
        maximum = share > kOverlapsNot && share > maximum ? share : maximum;
      }
      max_overlap[i] = maximum;
      matches[i] = ignored ? kIgnored : kNoObject;
    }
    __syncthreads();
    match_best(count, among, m.best + image * m.objects, matches, max_overlap);
    int matched = 0;
    for (int64_t i = threadIdx.x; i < m.priors; i += kImageThreads) {
      int object = matches[i];
      if (object == kNoObject) object = over_threshold(i, count, among, max_overlap + i);
      const T* row = object >= 0 ? rows + among[object] * int64_t{8} : nullptr;
      if (row && m.rule.ignore_difficult && row[7] != 0) object = kIgnored;
      int32_t label = object == kIgnored && m.rule.ignore_difficult ? kUncounted : m.background;
      if (object >= 0) label = m.agnostic ? m.background + 1 : static_cast<int32_t>(row[1]);
      matches[i] = object >= 0 ? among[object] : object;
      labels[i] = label;
      matched += object >= 0;
    }
    matched = block_all(matched, Plus());
    if (threadIdx.x == 0) m.matched[image] = count > 0 ? matched : -1;
  }
};

template <typename T>
__global__ void __launch_bounds__(kObjectThreads) compare_object(DeviceMatcher<T> matcher) {
  matcher.compare(blockIdx.x);
}

template <typename T>
__global__ void __launch_bounds__(kImageThreads) match_image(DeviceMatcher<T> matcher) {
  matcher.run(blockIdx.x);
}

template <typename T>
__global__ void __launch_bounds__(kImageThreads)
    mine_image(DeviceMatching m, MiningRule rule, const T* losses) {
  const int64_t image = blockIdx.x;
  int32_t *const matches = m.matches + image * m.priors, *const labels =
                                                             m.labels + image * m.priors;
  const float* const max_overlap = m.max_overlap + image * m.priors;
  losses += image * m.priors;
  const int matched = m.matched[image], count = static_cast<int>(m.priors);
  const auto key_at = [&](int i) {
    const bool background = matches[i] == kNoObject && max_overlap[i] < rule.max_overlap;
    return rule.hard_examples || background ? sort_key(static_cast<float>(losses[i]), i)
                                            : uint64_t{0};
  };
  int maximum = 0;  // in an image without objects no prior counts
  uint64_t minimum = 1;
  if (matched >= 0) {
    int eligible = 0;
    for (int i = threadIdx.x; i < count; i += kImageThreads) eligible += key_at(i) != 0;
    eligible = block_all(eligible, Plus());
    const float share = rule.hard_examples ? static_cast<float>(rule.maximum)
                                           : static_cast<float>(matched) * rule.ratio;
    maximum = share < static_cast<float>(eligible) ? static_cast<int>(share) : eligible;
    if (maximum > 0 && maximum < eligible) minimum = select_kth_key(count, maximum, key_at);
  }
  int stay = 0;
  for (int i = threadIdx.x; i < count; i += kImageThreads) {
    const bool chosen = maximum > 0 && key_at(i) >= minimum;
    const int32_t match = matches[i];
    const bool counts = match >= 0 ? chosen || !rule.hard_examples : match == kNoObject && chosen;
    if (match >= 0 && !counts) matches[i] = kIgnored;
    if (!counts) labels[i] = kUncounted;
    stay += match >= 0 && counts;
  }
  stay = block_all(stay, Plus());
  if (threadIdx.x == 0 && matched >= 0) m.matched[image] = stay;
}

Refusal match_on_device(Context& context, const DeviceMatching& matching, const Tensor& boxes,
                        const Tensor& objects) {
  on(boxes, [&]<typename T>() {
    const DeviceMatcher<T> matcher{matching, boxes.data<T>(), objects.data<T>()};
    if (matching.objects > 0) {
      launch(context.gpu(), compare_object<T>,
             {static_cast<unsigned>(matching.objects), kObjectThreads}, matcher);
    }
    launch(context.gpu(), match_image<T>, {static_cast<unsigned>(matching.images), kImageThreads},
           matcher);
  });
  return nullptr;
}

Refusal mine_on_device(Context& context, const DeviceMatching& matching, const MiningRule& rule,
                       const Tensor& losses) {
  on(losses, [&]<typename T>() {
    launch(context.gpu(), mine_image<T>, {static_cast<unsigned>(matching.images), kImageThreads},
           matching, rule, losses.data<T>());
  });
  return nullptr;
}

REGISTER_KERNEL(match_boxes_kernels, "cuda", RunsOn::gpu, 0, match_on_device);
REGISTER_KERNEL(mine_boxes_kernels, "cuda", RunsOn::gpu, 0, mine_on_device);

}  // namespace
}  // namespace crema
