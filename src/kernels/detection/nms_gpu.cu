// NMS on the GPU. A block of threads has one list: it selects the candidates, sorts them in shared
// memory and tests them in rounds of 32, one warp per candidate, against all kept boxes. A few long
// lists get a cluster of blocks each: all blocks test the same candidates, but each block stores,
// and tests against, only its part of the kept boxes.
#include <algorithm>

#include "device/aligned.h"
#include "device/multiprocessors.h"
#include "kernels/core/cluster.cuh"
#include "kernels/core/divisor.h"
#include "kernels/core/warp.cuh"
#include "kernels/detection/nms_kernels.h"
#include "kernels/reduce/select_keys.cuh"
#include "kernels/reduce/sort_key.h"

namespace crema {
namespace {

constexpr int kThreads = 1024;
constexpr int kRound = kThreads / 32;      // candidates of a round
constexpr int64_t kMaxCandidates = 16384;  // that a block sorts in shared memory
constexpr int kTooMany = -1;               // the count of a list that has more
constexpr int kMaxBlocks = 8;              // per list

struct Sizes {
  int64_t lists, candidates, max_kept;  // candidates and kept boxes: of a list, at most
  size_t count_bytes, key_bytes, box_bytes, detection_bytes;
  explicit Sizes(const NmsInput& in)
      : lists(in.lists()),
        candidates(in.max_candidates < 0 ? in.boxes_per_list
                                         : std::min(in.max_candidates, in.boxes_per_list)),
        max_kept(in.suppression.maximum < 0 ? candidates
                                            : std::min(in.suppression.maximum, candidates)),
        count_bytes(aligned(lists * sizeof(int32_t))),
        key_bytes(aligned(lists * max_kept * sizeof(uint64_t))),
        box_bytes(aligned(lists * (max_kept + kMaxBlocks) * sizeof(Box))),
        detection_bytes(aligned(lists * max_kept * sizeof(Detection))) {}
  size_t all() const { return count_bytes + key_bytes + box_bytes + detection_bytes; }
  // As many blocks as run at once, each with several rounds of candidates.
  int64_t blocks_of_list() const {
    int64_t blocks = 1;
    while (2 * blocks <= kMaxBlocks && 2 * blocks * lists <= kTypicalMultiprocessors &&
           blocks * 1024 < candidates)
      blocks *= 2;
    return blocks;
  }
  // How many keys a block sorts at most: those of all candidates, if shared memory has room.
  int sorted(int64_t shared_bytes) const {
    int64_t count = kRound;
    while (count < std::min(candidates, kMaxCandidates) &&
           2 * count * static_cast<int64_t>(sizeof(uint64_t)) <= shared_bytes)
      count *= 2;
    return static_cast<int>(count);
  }
};

// The kept boxes, in the workspace.
struct Survivors {
  int64_t max_kept;
  int32_t* counts = nullptr;
  uint64_t* keys = nullptr;  // (lists, max_kept)
  float4* boxes = nullptr;   // (lists, max_kept + kMaxBlocks): the part of each block
};

__device__ inline Box box_at(const float4* at) {
  const float4 box = *at;
  return {box.x, box.y, box.z, box.w};
}

// The sorted candidates of a list and their boxes.
struct Candidates {
  const uint64_t* keys;
  int count;
  const Box* boxes;
  int64_t stride;
  __device__ bool has(int i) const { return i < count; }
  __device__ uint64_t key(int i) const { return i < count ? keys[i] : 0; }
  __device__ Box box(int i) const {
    return i < count ? boxes[position_of_key(keys[i]) * stride] : Box{};
  }
};

// A candidate's largest overlap with `count` kept boxes, in every lane of a warp; the search ends
// at the first that exceeds the threshold. -1 for a candidate that does not exist.
__device__ float largest_overlap(const Box& box, bool exists, const float4* kept_boxes, int count,
                                 float threshold, const Suppression& how) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float largest = -1;
  bool suppressed = !exists;
#pragma unroll 1
  for (int k = 0; k < count && !suppressed; k += 32) {
    const float with_kept =
        k + lane < count ? overlap(box, box_at(kept_boxes + k + lane), how.pixel, how.by) : -1;
    largest = with_kept > largest ? with_kept : largest;
    suppressed = __any_sync(0xffffffffu, largest > threshold);
  }
  return warp_all(largest, Larger());
}

// What all threads know alike between rounds.
struct Progress {
  int kept;
  float threshold;
};

// Where a block stores kept boxes: every cluster_blocks()-th box, and the first block the keys of
// all and their number.
struct KeptOfList {
  uint64_t* keys;
  float4* boxes;
  int32_t* count;
};

// Keeps or drops the candidates of a round, which starts at `first`, in order of score: warp 0,
// whose lane i has candidate i. max_overlap: with the boxes that each block has kept; overlaps: of
// the candidates with each other, [better][worse].
__device__ Progress resolve_round(const Candidates& candidates, int first, int maximum,
                                  const Suppression& how,
                                  const float (&max_overlap)[kMaxBlocks][kRound],
                                  const float (&overlaps)[kRound][kRound], Progress progress,
                                  const KeptOfList& out) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int blocks = cluster_blocks(), rank = cluster_rank();
  auto [kept, threshold] = progress;
  const uint64_t key = candidates.key(first + lane);
  const Box box = candidates.box(first + lane);
  float largest = max_overlap[0][lane];
  for (int block = 1; block < blocks; ++block)
    largest = Larger()(largest, max_overlap[block][lane]);
  int position = -1;  // among the kept boxes
#pragma unroll 4
  for (int i = 0; i < kRound; ++i) {
    const float with_better = overlaps[i][lane],
                largest_of_i = __shfl_sync(0xffffffffu, largest, i);
    const bool keeps = candidates.has(first + i) && kept < maximum && !(largest_of_i > threshold);
    position = keeps && lane == i ? kept : position;
    largest = keeps && with_better > largest ? with_better : largest;
    threshold = keeps && how.eta < 1 && threshold > 0.5f ? threshold * how.eta : threshold;
    kept += keeps;
  }
  if (position >= 0 && rank == 0) out.keys[position] = key;
  if (position >= 0 && position % blocks == rank)
    out.boxes[position / blocks] = make_float4(box.x1, box.y1, box.x2, box.y2);
  return {kept, threshold};
}

// Greedy suppression: a candidate is kept unless a better kept box overlaps it by more than the
// threshold. Every block computes the same `kept` and `threshold`, so all leave the loop together.
// max_overlap has two buffers, so that one cluster barrier per round suffices.
__device__ void suppress_list(const Candidates& candidates, const Suppression& how,
                              const KeptOfList& out) {
  __shared__ float max_overlap[2][kMaxBlocks][kRound], overlaps[kRound][kRound];
  __shared__ Progress resolved;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int blocks = cluster_blocks(), rank = cluster_rank(), count = candidates.count;
  const int maximum =
      how.maximum < 0 || how.maximum > count ? count : static_cast<int>(how.maximum);
  Progress progress{0, how.threshold};
  int parity = 0;
  cluster_barrier();  // other blocks must have started before their shared memory is written
#pragma unroll 1
  for (int first = 0; first < count && progress.kept < maximum; first += kRound, parity ^= 1) {
    const int kept_in_block = (progress.kept - rank + blocks - 1) / blocks;
    const Box box = candidates.box(first + warp);
    const float largest = largest_overlap(box, candidates.has(first + warp), out.boxes,
                                          kept_in_block, progress.threshold, how);
    overlaps[warp][lane] = overlap(candidates.box(first + lane), box, how.pixel, how.by);
    if (lane < blocks) *of_cluster(&max_overlap[parity][rank][warp], lane) = largest;
    cluster_barrier();
    if (warp == 0) {
      progress = resolve_round(candidates, first, maximum, how, max_overlap[parity], overlaps,
                               progress, out);
      if (lane == 0) resolved = progress;
    }
    __syncthreads();
    progress = resolved;
  }
  if (rank == 0 && threadIdx.x == 0) *out.count = progress.kept;
}

__global__ void __launch_bounds__(kThreads)
    select_and_suppress(NmsInput in, int sorted, Survivors out) {
  extern __shared__ uint64_t keys[];
  __shared__ int gathered;
  const int64_t index = blockIdx.x / cluster_blocks(), group = index / in.lists_per_group,
                list = index % in.lists_per_group;
  if (list == in.skipped_list) {
    if (threadIdx.x == 0) out.counts[index] = 0;
    return;
  }
  const float* scores = in.scores + group * in.boxes_per_list * in.lists_per_group + list;
  const auto key_at = [&](int i) {
    const float score = scores[i * in.lists_per_group];
    return score > in.min_score ? sort_key(score, i) : uint64_t{0};
  };
  const int count = static_cast<int>(in.boxes_per_list);
  int passing = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) passing += key_at(i) != 0;
  passing = block_all(passing, Plus());
  const bool some = in.max_candidates >= 0 && in.max_candidates < passing;
  const int candidates = some ? static_cast<int>(in.max_candidates) : passing;
  if (candidates == 0 || candidates > sorted) {
    if (threadIdx.x == 0) out.counts[index] = candidates == 0 ? 0 : kTooMany;
    return;
  }
  const uint64_t threshold = some ? select_kth_key(count, candidates, key_at) : 1;
  int power = 1;
  while (power < candidates) power *= 2;
  for (int i = threadIdx.x; i < power; i += kThreads) keys[i] = 0;
  if (threadIdx.x == 0) gathered = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const uint64_t key = key_at(i);
    if (key >= threshold) keys[atomicAdd(&gathered, 1)] = key;
  }
  bitonic_sort(keys, power);
  const int64_t room = out.max_kept + kMaxBlocks, part = room / cluster_blocks();
  suppress_list({keys, candidates, in.boxes_of(group, list), in.box_lists()}, in.suppression,
                {out.keys + index * out.max_kept, out.boxes + index * room + cluster_rank() * part,
                 out.counts + index});
}

// Keeps the best of all lists of a group; each list starts with its best.
__global__ void __launch_bounds__(kThreads)
    limit_groups(NmsInput in, Survivors kept, Divisor by_max_kept) {
  int32_t* const counts = kept.counts + blockIdx.x * in.lists_per_group;
  const uint64_t* const keys = kept.keys + blockIdx.x * in.lists_per_group * kept.max_kept;
  const int maximum = static_cast<int>(in.max_per_group),
            slots = static_cast<int>(in.lists_per_group * kept.max_kept);
  int all = 0, too_many = 0;
  for (int64_t k = threadIdx.x; k < in.lists_per_group; k += kThreads) {
    all += counts[k] > 0 ? counts[k] : 0;
    too_many += counts[k] == kTooMany;
  }
  all = block_all(all, Plus());
  too_many = block_all(too_many, Plus());
  if (all <= maximum || too_many > 0) return;
  const auto key_at = [&](int i) {
    auto slot = static_cast<uint32_t>(i);
    const uint32_t k = by_max_kept.split(slot);
    return static_cast<int>(slot) < counts[k] ? sort_key(score_of_key(keys[i]), i) : uint64_t{0};
  };
  const uint64_t threshold = maximum > 0 ? select_kth_key(slots, maximum, key_at) : ~uint64_t{0};
  for (int64_t k = threadIdx.x; k < in.lists_per_group; k += kThreads) {
    int count = counts[k];
    while (count > 0 && key_at(static_cast<int>(k * kept.max_kept) + count - 1) < threshold)
      --count;
    counts[k] = count;
  }
}

// Concatenates the kept boxes of all lists.
__global__ void pack_kept(NmsInput in, Survivors kept, Detection* packed) {
  const int64_t index = blockIdx.x, group = index / in.lists_per_group;
  int before = 0;
  for (int64_t other = threadIdx.x; other < index; other += blockDim.x) {
    const int count = kept.counts[other];
    before += count > 0 ? count : 0;
  }
  before = block_all(before, Plus());
  for (int i = threadIdx.x; i < kept.counts[index]; i += blockDim.x) {
    const uint64_t key = kept.keys[index * kept.max_kept + i];
    const int64_t position = position_of_key(key), list = index % in.lists_per_group;
    packed[before + i] = {
        static_cast<int32_t>(group),
        in.labels ? in.labels[group * in.boxes_per_list + position] : static_cast<int32_t>(list),
        score_of_key(key), in.boxes_of(group, list)[position * in.box_lists()]};
  }
}

template <typename T>
std::vector<T> to_host(Context& context, const T* from, int64_t count) {
  std::vector<T> values(count);
  copy_bytes(context, values.data(), Device::cpu, from, Device::gpu, count * sizeof(T));
  return values;
}

// For lists with more candidates than can be sorted in shared memory.
NmsResult nms_of_long_lists(Context& context, NmsInput in) {
  const int64_t count = in.groups * in.boxes_per_list;
  const std::vector<float> scores = to_host(context, in.scores, count * in.lists_per_group);
  const std::vector<Box> boxes = to_host(context, in.boxes, count * in.box_lists());
  const std::vector<int32_t> labels = to_host(context, in.labels, in.labels ? count : 0);
  in.scores = scores.data();
  in.boxes = boxes.data();
  if (in.labels) in.labels = labels.data();
  return nms_on_host(in);
}

Refusal nms_workspace_gpu(Context&, const NmsInput& input, size_t& bytes) {
  bytes = Sizes(input).all();
  return nullptr;
}

NmsResult kept_on_gpu(Context& context, const NmsInput& input, void* workspace) {
  const Sizes sizes(input);
  if (sizes.max_kept == 0) return {std::vector<int32_t>(sizes.lists), {}, nullptr};
  if (sizes.lists == 0) return {};
  char* at = static_cast<char*>(workspace);
  const auto next = [&](size_t bytes) {
    char* const part = at;
    at += bytes;
    return part;
  };
  Survivors kept{sizes.max_kept};
  kept.counts = reinterpret_cast<int32_t*>(next(sizes.count_bytes));
  kept.keys = reinterpret_cast<uint64_t*>(next(sizes.key_bytes));
  kept.boxes = reinterpret_cast<float4*>(next(sizes.box_bytes));
  auto* const packed = reinterpret_cast<Detection*>(next(sizes.detection_bytes));
  const GpuCard& card = context.gpu().card;
  cudaFuncAttributes attributes{};
  check_cuda(cudaFuncGetAttributes(&attributes, select_and_suppress),
             "asking how much shared memory a kernel has");
  const int sorted =
      sizes.sorted(card.shared_bytes - static_cast<int64_t>(attributes.sharedSizeBytes));
  const size_t shared = sorted * sizeof(uint64_t);
  check_cuda(cudaFuncSetAttribute(select_and_suppress, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared)),
             "asking for shared memory");
  const auto blocks = static_cast<unsigned>(sizes.lists);
  const auto cluster = static_cast<unsigned>(card.has_clusters() ? sizes.blocks_of_list() : 1);
  launch(context.gpu(), select_and_suppress, {blocks * cluster, kThreads, shared, cluster}, input,
         sorted, kept);
  if (input.max_per_group >= 0) {
    launch(context.gpu(), limit_groups, {static_cast<unsigned>(input.groups), kThreads}, input,
           kept, Divisor(kept.max_kept));
  }
  launch(context.gpu(), pack_kept, {blocks, 256}, input, kept, packed);
  const std::vector<int32_t> counts = to_host(context, kept.counts, sizes.lists);
  if (std::find(counts.begin(), counts.end(), kTooMany) != counts.end())
    return nms_of_long_lists(context, input);
  return {counts, {}, packed};
}

Refusal nms_gpu(Context& context, const NmsInput& input, void* workspace, NmsResult& result) {
  result = kept_on_gpu(context, input, workspace);
  return nullptr;
}

REGISTER_KERNEL(nms_kernels, "cuda", RunsOn::gpu, 10, nms_gpu);
REGISTER_KERNEL(nms_workspace_kernels, "cuda", RunsOn::gpu, 10, nms_workspace_gpu);

}  // namespace
}  // namespace crema
