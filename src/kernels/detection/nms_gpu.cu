// NMS on the GPU. A block of threads has one list: it selects the candidates, sorts them in shared
// memory and tests them in rounds of 32, one warp per candidate, against all kept boxes. A few long
// lists get a cluster of blocks each: all blocks test the same candidates, but each block stores,
// and tests against, only its share of the kept boxes.
#include "kernels/detection/nms_gpu.h"

#include <algorithm>

#include "device/aligned.h"
#include "kernels/core/best_ranks.cuh"
#include "kernels/core/cluster.cuh"
#include "kernels/core/divisor.h"
#include "kernels/core/rank.h"
#include "kernels/core/warp.cuh"

namespace crema {
namespace {

constexpr int kThreads = 1024, kTogether = kThreads / 32;
constexpr int64_t kMaxCandidates = 16384;  // that can be sorted in shared memory
constexpr int kTooMany = -1;               // the count of a list that has more
constexpr int kMaxBlocks = 8;              // per list

struct Sizes {
  int64_t lists, candidates, room;  // room: for the kept boxes of a list
  size_t counts, ranks, boxes, found;
  explicit Sizes(const BoxLists& l)
      : lists(l.groups * l.each),
        candidates(l.candidates < 0 ? l.count : std::min(l.candidates, l.count)),
        room(l.suppression.maximum < 0 ? candidates : std::min(l.suppression.maximum, candidates)),
        counts(aligned(lists * sizeof(int32_t))),
        ranks(aligned(lists * room * sizeof(uint64_t))),
        boxes(aligned(lists * (room + kMaxBlocks) * sizeof(Box))),
        found(aligned(lists * room * sizeof(Detection))) {}
  size_t all() const { return counts + ranks + boxes + found; }
  // As many blocks as run at once, each with several rounds of candidates.
  int64_t blocks_of_list() const {
    int64_t blocks = 1;
    while (2 * blocks <= kMaxBlocks && 2 * blocks * lists <= 132 && blocks * 1024 < candidates)
      blocks *= 2;
    return blocks;
  }
  // Ranks for which shared memory has room.
  int sorted() const {
    int64_t count = kTogether;
    while (count < std::min(candidates, kMaxCandidates)) count *= 2;
    return static_cast<int>(count);
  }
};

// The kept boxes, in the workspace.
struct Stay {
  int64_t room;
  int32_t* counts = nullptr;
  uint64_t* ranks = nullptr;  // (lists, room)
  float4* boxes = nullptr;    // (lists, room + kMaxBlocks): each block's share
};

__device__ inline Box box_at(const float4* at) {
  const float4 box = *at;
  return {box.x, box.y, box.z, box.w};
}

// The sorted candidates of a list and their boxes.
struct Candidates {
  const uint64_t* ranks;
  int count;
  const Box* boxes;
  int64_t stride;
  __device__ bool has(int i) const { return i < count; }
  __device__ uint64_t rank(int i) const { return i < count ? ranks[i] : 0; }
  __device__ Box box(int i) const {
    return i < count ? boxes[ranked_position(ranks[i]) * stride] : Box{};
  }
};

// Tests the candidates in order. The block stores every cluster_blocks()-th kept box, and the first
// block the ranks and their number.
__device__ void keep_boxes(const Candidates& candidates, const Suppression& how,
                           uint64_t* ranks_that_stay, float4* boxes_that_stay,
                           int32_t* count_that_stay) {
  // covered_by: each candidate's largest overlap with the kept boxes of each block, for this round
  // and the next; shares: the overlaps between candidates.
  __shared__ float covered_by[2][kMaxBlocks][kTogether], shares[kTogether][kTogether];
  __shared__ float threshold_now;
  __shared__ int stay_now;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int blocks = cluster_blocks(), own = cluster_rank(), count = candidates.count;
  const int maximum =
      how.maximum < 0 || how.maximum > count ? count : static_cast<int>(how.maximum);
  float threshold = how.threshold;
  int stay = 0, round = 0;
  cluster_barrier();  // other blocks must have started before their shared memory is written
#pragma unroll 1
  for (int first = 0; first < count && stay < maximum; first += kTogether, round ^= 1) {
    const int own_stay = (stay - own + blocks - 1) / blocks;
    const Box box = candidates.box(first + warp);
    float covered = -1;
    bool gone = !candidates.has(first + warp);
#pragma unroll 1
    for (int k = 0; k < own_stay && !gone; k += 32) {
      const float share = k + lane < own_stay
                              ? overlap(box, box_at(boxes_that_stay + k + lane), how.pixel, how.by)
                              : -1;
      covered = share > covered ? share : covered;
      gone = __any_sync(0xffffffffu, covered > threshold);
    }
    shares[warp][lane] = overlap(candidates.box(first + lane), box, how.pixel, how.by);
    covered = warp_all(covered, Larger());
    if (lane < blocks) *of_cluster(&covered_by[round][own][warp], lane) = covered;
    cluster_barrier();
    if (warp == 0) {  // against each other: lane i has candidate i
      const uint64_t rank = candidates.rank(first + lane);
      const Box of_lane = candidates.box(first + lane);
      float by_max = covered_by[round][0][lane];
      for (int block = 1; block < blocks; ++block)
        by_max = Larger()(by_max, covered_by[round][block][lane]);
      int position = -1;
#pragma unroll 4
      for (int i = 0; i < kTogether; ++i) {
        const float share = shares[i][lane], of_candidate = __shfl_sync(0xffffffffu, by_max, i);
        const bool stays =
            candidates.has(first + i) && stay < maximum && !(of_candidate > threshold);
        position = stays && lane == i ? stay : position;
        by_max = stays && share > by_max ? share : by_max;
        threshold = stays && how.eta < 1 && threshold > 0.5f ? threshold * how.eta : threshold;
        stay += stays;
      }
      if (position >= 0 && own == 0) ranks_that_stay[position] = rank;
      if (position >= 0 && position % blocks == own) {
        boxes_that_stay[position / blocks] =
            make_float4(of_lane.x1, of_lane.y1, of_lane.x2, of_lane.y2);
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
  if (own == 0 && threadIdx.x == 0) *count_that_stay = stay;
}

__global__ void __launch_bounds__(kThreads) find_best(BoxLists l, int sorted, Stay out) {
  extern __shared__ uint64_t ranks[];
  __shared__ int gathered;
  const int64_t list = blockIdx.x / cluster_blocks(), group = list / l.each, own = list % l.each;
  if (own == l.left_out) {
    if (threadIdx.x == 0) out.counts[list] = 0;
    return;
  }
  const float* scores = l.scores + group * l.count * l.each + own;
  const auto rank_at = [&](int i) {
    const float score = scores[i * l.each];
    return score > l.minimum ? rank_of(score, i) : uint64_t{0};
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
  const uint64_t minimum = some ? min_of_best(count, candidates, rank_at) : 1;
  int power = 1;
  while (power < candidates) power *= 2;
  for (int i = threadIdx.x; i < power; i += kThreads) ranks[i] = 0;
  if (threadIdx.x == 0) gathered = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const uint64_t rank = rank_at(i);
    if (rank >= minimum) ranks[atomicAdd(&gathered, 1)] = rank;
  }
  sort_ranks(ranks, power);
  const int64_t room = out.room + kMaxBlocks, share = room / cluster_blocks();
  keep_boxes({ranks, candidates,
              l.boxes + group * l.count * l.positions + (l.positions == 1 ? 0 : own), l.positions},
             l.suppression, out.ranks + list * out.room,
             out.boxes + list * room + cluster_rank() * share, out.counts + list);
}

// Keeps the best of all lists of a group; each list starts with its best.
__global__ void __launch_bounds__(kThreads) limit_group(BoxLists l, Stay stay, Divisor room) {
  int32_t* const counts = stay.counts + blockIdx.x * l.each;
  const uint64_t* const ranks = stay.ranks + blockIdx.x * l.each * stay.room;
  const int maximum = static_cast<int>(l.max_of_group),
            slots = static_cast<int>(l.each * stay.room);
  int all = 0, too_many = 0;
  for (int64_t k = threadIdx.x; k < l.each; k += kThreads) {
    all += counts[k] > 0 ? counts[k] : 0;
    too_many += counts[k] == kTooMany;
  }
  all = block_all(all, Plus());
  too_many = block_all(too_many, Plus());
  if (all <= maximum || too_many > 0) return;
  const auto rank_at = [&](int i) {
    auto slot = static_cast<uint32_t>(i);
    const uint32_t k = room.split(slot);
    return static_cast<int>(slot) < counts[k] ? rank_of(ranked_score(ranks[i]), i) : uint64_t{0};
  };
  const uint64_t minimum = maximum > 0 ? min_of_best(slots, maximum, rank_at) : ~uint64_t{0};
  for (int64_t k = threadIdx.x; k < l.each; k += kThreads) {
    int count = counts[k];
    while (count > 0 && rank_at(static_cast<int>(k * stay.room) + count - 1) < minimum) --count;
    counts[k] = count;
  }
}

// Concatenates the kept boxes of all lists.
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
    const int64_t at = group * l.count + ranked_position(rank), own = list % l.each;
    found[before + i] = {static_cast<int32_t>(group),
                         l.labels ? l.labels[at] : static_cast<int32_t>(own), ranked_score(rank),
                         l.boxes[at * l.positions + (l.positions == 1 ? 0 : own)]};
  }
}

template <typename T>
std::vector<T> to_host(Context& context, const T* from, int64_t count) {
  std::vector<T> values(count);
  copy_bytes(context, values.data(), Device::cpu, from, Device::gpu, count * sizeof(T));
  return values;
}

// For lists with more candidates than can be sorted in shared memory.
Nms of_long_lists(Context& context, BoxLists lists) {
  const int64_t count = lists.groups * lists.count;
  const std::vector<float> scores = to_host(context, lists.scores, count * lists.each);
  const std::vector<Box> boxes = to_host(context, lists.boxes, count * lists.positions);
  const std::vector<int32_t> labels = to_host(context, lists.labels, lists.labels ? count : 0);
  lists.scores = scores.data();
  lists.boxes = boxes.data();
  if (lists.labels) lists.labels = labels.data();
  return nms_on_host(lists);
}

}  // namespace

size_t nms_gpu_workspace(const BoxLists& lists) { return Sizes(lists).all(); }

Nms nms_gpu(Context& context, const BoxLists& lists, void* workspace) {
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
  const auto cluster = static_cast<unsigned>(has_clusters(context) ? sizes.blocks_of_list() : 1);
  launch(context.gpu(), find_best, {blocks * cluster, kThreads, shared, cluster}, lists, sorted,
         stay);
  if (lists.max_of_group >= 0) {
    launch(context.gpu(), limit_group, {static_cast<unsigned>(lists.groups), kThreads}, lists, stay,
           Divisor(stay.room));
  }
  launch(context.gpu(), pack_found, {blocks, 256}, lists, stay, packed);
  const std::vector<int32_t> counts = to_host(context, stay.counts, sizes.lists);
  if (std::find(counts.begin(), counts.end(), kTooMany) != counts.end())
    return of_long_lists(context, lists);
  return {counts, {}, packed};
}

}  // namespace crema
