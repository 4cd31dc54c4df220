// A block of threads has a list: it chooses the candidates, sorts them in shared memory and lets
// them pass one after the other, 32 at a time, each warp holding one against all that stay.
#include "kernels/best_boxes_gpu.h"

#include <algorithm>

#include "device/launch.h"
#include "kernels/best_ranks.cuh"
#include "kernels/rank.h"
#include "kernels/warp.cuh"

namespace crema {
namespace {

constexpr int kThreads = 1024, kTogether = kThreads / 32;
constexpr int64_t kMostCandidates = 16384;  // that are sorted in shared memory
constexpr int kTooMany = -1;                // the count of a list with more

struct Sizes {
  int64_t lists, candidates, room;  // room: of those of a list that stay
  size_t counts, ranks, boxes, found;
  explicit Sizes(const BoxLists& l)
      : lists(l.groups * l.each),
        candidates(l.candidates < 0 ? l.count : std::min(l.candidates, l.count)),
        room(l.suppression.most < 0 ? candidates : std::min(l.suppression.most, candidates)),
        counts(padded(lists * sizeof(int32_t))),
        ranks(padded(lists * room * sizeof(uint64_t))),
        boxes(padded(lists * room * sizeof(Box))),
        found(padded(lists * room * sizeof(Detection))) {}
  size_t all() const { return counts + ranks + boxes + found; }
  // Ranks that shared memory has room for.
  int sorted() const {
    int64_t count = kTogether;
    while (count < std::min(candidates, kMostCandidates)) count *= 2;
    return static_cast<int>(count);
  }
};

// In the workspace, `room` of each list.
struct Stay {
  int64_t room;
  int32_t* counts = nullptr;
  uint64_t* ranks = nullptr;
  float4* boxes = nullptr;
};

__device__ inline Box box_at(const float4* at) {
  const float4 box = *at;
  return {box.x, box.y, box.z, box.w};
}

// Lets the sorted ranks pass; boxes: the list's, `stride` apart.
__device__ void let_stay(const uint64_t* ranks, int count, const Box* boxes, int64_t stride,
                         const Suppression& how, uint64_t* ranks_that_stay, float4* boxes_that_stay,
                         int32_t* count_that_stay) {
  __shared__ float most_covered[kTogether], threshold_now;
  __shared__ int stay_now;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int most = how.most < 0 || how.most > count ? count : static_cast<int>(how.most);
  float threshold = how.threshold;
  int stay = 0;
#pragma unroll 1
  for (int first = 0; first < count && stay < most; first += kTogether) {
    // By those that stay from before.
    float covered = -1;
    if (first + warp < count) {
      const Box box = boxes[ranked_place(ranks[first + warp]) * stride];
      bool gone = false;
#pragma unroll 1
      for (int k = 0; k < stay && !gone; k += 32) {
        const float share =
            k + lane < stay ? overlap(box, box_at(boxes_that_stay + k + lane), how.pixel) : -1;
        covered = share > covered ? share : covered;
        gone = __any_sync(0xffffffffu, covered > threshold);
      }
      covered = warp_all(covered, Larger());
    }
    if (lane == 0) most_covered[warp] = covered;
    __syncthreads();
    if (warp == 0) {  // by each other: lane i has candidate i
      const bool there = first + lane < count;
      const uint64_t rank = there ? ranks[first + lane] : 0;
      const Box own = there ? boxes[ranked_place(rank) * stride] : Box{};
      float by_most = most_covered[lane];
#pragma unroll 1
      for (int i = 0; i < kTogether; ++i) {
        const float of_candidate = __shfl_sync(0xffffffffu, by_most, i);
        const Box candidate{
            __shfl_sync(0xffffffffu, own.x1, i), __shfl_sync(0xffffffffu, own.y1, i),
            __shfl_sync(0xffffffffu, own.x2, i), __shfl_sync(0xffffffffu, own.y2, i)};
        const bool stays = first + i < count && stay < most && !(of_candidate > threshold);
        if (stays && lane == i) {
          ranks_that_stay[stay] = rank;
          boxes_that_stay[stay] = make_float4(own.x1, own.y1, own.x2, own.y2);
        }
        const float share = overlap(own, candidate, how.pixel);
        by_most = stays && share > by_most ? share : by_most;
        threshold = stays && how.eta < 1 && threshold > 0.5f ? threshold * how.eta : threshold;
        stay += stays;
      }
      if (lane == 0) {
        stay_now = stay;
        threshold_now = threshold;
      }
    }
    __syncthreads();
    stay = stay_now;
    threshold = threshold_now;
  }
  if (threadIdx.x == 0) *count_that_stay = stay;
}

__global__ void __launch_bounds__(kThreads) find_best(BoxLists l, int sorted, Stay out) {
  extern __shared__ uint64_t ranks[];
  __shared__ int gathered;
  const int64_t list = blockIdx.x, group = list / l.each, own = list % l.each;
  if (own == l.left_out) {
    if (threadIdx.x == 0) out.counts[list] = 0;
    return;
  }
  const float* scores = l.scores + group * l.count * l.each + own;
  const auto rank_at = [&](int i) {
    const float score = scores[i * l.each];
    return score > l.least ? rank_of(score, i) : uint64_t{0};
  };
  const int count = static_cast<int>(l.count);
  int passing = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) passing += rank_at(i) != 0;
  passing = block_all(passing, Plus());
  const bool some = l.candidates >= 0 && l.candidates < passing;
  const int candidates = some ? static_cast<int>(l.candidates) : passing;
  if (candidates == 0 || candidates > sorted) {
    if (threadIdx.x == 0) out.counts[list] = candidates == 0 ? 0 : kTooMany;
    return;
  }
  const uint64_t least = some ? least_of_best(count, candidates, rank_at) : 1;
  int power = 1;
  while (power < candidates) power *= 2;
  for (int i = threadIdx.x; i < power; i += kThreads) ranks[i] = 0;
  if (threadIdx.x == 0) gathered = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const uint64_t rank = rank_at(i);
    if (rank >= least) ranks[atomicAdd(&gathered, 1)] = rank;
  }
  sort_ranks(ranks, power);
  let_stay(ranks, candidates, l.boxes + group * l.count * l.places + (l.places == 1 ? 0 : own),
           l.places, l.suppression, out.ranks + list * out.room, out.boxes + list * out.room,
           out.counts + list);
}

// Puts what stays of all lists one after the other.
__global__ void pack_found(BoxLists l, Stay stay, Detection* found) {
  const int64_t list = blockIdx.x, group = list / l.each;
  int before = 0;
  for (int64_t other = threadIdx.x; other < list; other += blockDim.x) {
    const int count = stay.counts[other];
    before += count > 0 ? count : 0;
  }
  before = block_all(before, Plus());
  for (int i = threadIdx.x; i < stay.counts[list]; i += blockDim.x) {
    const uint64_t rank = stay.ranks[list * stay.room + i];
    const int64_t at = group * l.count + ranked_place(rank);
    found[before + i] = {l.labels ? l.labels[at] : static_cast<int32_t>(list % l.each),
                         ranked_score(rank), box_at(stay.boxes + list * stay.room + i)};
  }
}

template <typename T>
std::vector<T> to_host(Context& context, const T* from, int64_t count) {
  std::vector<T> values(count);
  copy_bytes(context, values.data(), Device::cpu, from, Device::gpu, count * sizeof(T));
  return values;
}

// More candidates than are sorted in shared memory.
std::vector<std::vector<Detection>> of_long_lists(Context& context, BoxLists lists) {
  const int64_t count = lists.groups * lists.count;
  const std::vector<float> scores = to_host(context, lists.scores, count * lists.each);
  const std::vector<Box> boxes = to_host(context, lists.boxes, count * lists.places);
  const std::vector<int32_t> labels = to_host(context, lists.labels, lists.labels ? count : 0);
  lists.scores = scores.data();
  lists.boxes = boxes.data();
  if (lists.labels) lists.labels = labels.data();
  return best_boxes_on_host(lists);
}

}  // namespace

size_t best_boxes_gpu_workspace(const BoxLists& lists) { return Sizes(lists).all(); }

std::vector<std::vector<Detection>> best_boxes_gpu(Context& context, const BoxLists& lists,
                                                   void* workspace) {
  const Sizes sizes(lists);
  if (sizes.lists == 0) return {};
  char* at = static_cast<char*>(workspace);
  const auto next = [&](size_t bytes) {
    char* const part = at;
    at += bytes;
    return part;
  };
  Stay stay{sizes.room};
  stay.counts = reinterpret_cast<int32_t*>(next(sizes.counts));
  stay.ranks = reinterpret_cast<uint64_t*>(next(sizes.ranks));
  stay.boxes = reinterpret_cast<float4*>(next(sizes.boxes));
  auto* const packed = reinterpret_cast<Detection*>(next(sizes.found));
  const int sorted = sizes.sorted();
  const size_t shared = sorted * sizeof(uint64_t);
  check_cuda(cudaFuncSetAttribute(find_best, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared)),
             "asking for shared memory");
  const auto blocks = static_cast<unsigned>(sizes.lists);
  launch(context.gpu(), find_best, {blocks, kThreads, shared}, lists, sorted, stay);
  launch(context.gpu(), pack_found, {blocks, 256}, lists, stay, packed);
  const std::vector<int32_t> counts = to_host(context, stay.counts, sizes.lists);
  int64_t all = 0;
  for (const int32_t count : counts) {
    if (count == kTooMany) return of_long_lists(context, lists);
    all += count;
  }
  const std::vector<Detection> found = to_host(context, packed, all);
  std::vector<std::vector<Detection>> of_lists;
  auto first = found.begin();
  for (const int32_t count : counts) {
    of_lists.emplace_back(first, first + count);
    first += count;
  }
  return of_lists;
}

}  // namespace crema
