// Walks over the blocks of an update's table: applying a rule, and sums of each segment. For .cu
// files only, as device/parallel.h.
#pragma once

#include "device/parallel.h"
#include "kernels/update_factors.h"
#include "kernels/update_rules.h"
#ifdef __CUDACC__
#include "kernels/warp.cuh"
#endif

namespace crema {

// Weights that follow the others at every so many updates, and take them along.
template <typename T>
struct SlowWeights {
  T* slow = nullptr;
  T length = 0;
  uint64_t every = 1;
  uint64_t updates = 0;  // before this one
  CREMA_HD bool follow_now() const { return slow && (updates + 1) % every == 0; }
  CREMA_HD T followed(int64_t i, T weight) const { return slow[i] += length * (weight - slow[i]); }
};

// Where a new weight goes besides its place.
template <typename T>
struct UpdateFinish {
  void* half = nullptr;
  bool brain = false;
  T* average = nullptr;
  T keep = 0;
  SlowWeights<T> slow = {};
  CREMA_HD void averaged(int64_t i, T weight) const {
    average[i] = keep * average[i] + (1 - keep) * weight;
  }
};

// Which walk of an update this is. last: the counters move on behind it.
struct Walk {
  const BlockTable& table;
  const SegmentFactor* factors = nullptr;
  const LiveUpdate* live = nullptr;
  bool last = true;
};

// Counters and loss scale after an update.
struct Advance {
  LiveUpdate live;
  CREMA_HD void operator()(int64_t) const {
    UpdateNumbers& n = *live.numbers;
    if (live.pass) ++*live.pass;
    ++n.updates;
    if (!live.limits.scales_loss) return;
    const bool grow = n.finite && n.good + 1 >= live.limits.growth_after;
    if (!n.finite && n.loss_scale > 1) n.loss_scale /= 2;
    if (grow && n.loss_scale < 0x1p24f) n.loss_scale *= 2;
    n.good = n.finite && !grow ? n.good + 1 : 0;
  }
};

// The rule with the numbers of one block in it.
template <typename Rule>
CREMA_HD Rule within(const Rule& rule, const Block& block, const SegmentFactor* factors) {
  Rule local = rule;
  local.in.rate *= block.lr_mult;
  local.in.penalty *= block.decay_mult;
  local.in.shrink *= block.decay_mult;
  if (factors) {
    local.in.scale *= factors[block.segment].gradient;
    local.in.rate = factors[block.segment].rate;
  }
  return local;
}

#ifdef __CUDACC__

// As many CUDA blocks as run at the same time: each ends with a count of all others, which costs
// more than another of our blocks.
inline unsigned grid_for(int64_t blocks) {
  return static_cast<unsigned>(std::clamp<int64_t>(blocks, 1, 8 * 132));
}

template <typename T>
__device__ void finish_element(const UpdateFinish<T>& finish, int64_t i, T weight) {
  if (finish.average) finish.averaged(i, weight);
  if (!finish.half) return;
  if (finish.brain) {
    static_cast<BFloat16*>(finish.half)[i] = static_cast<float>(weight);
  } else {
    static_cast<Half*>(finish.half)[i] = static_cast<float>(weight);
  }
}

// Four elements a thread of each block, a warp's side by side.
template <typename T, typename Rule>
__global__ void run_blocks(Rule rule, const Block* blocks, int count, const SegmentFactor* factors,
                           UpdateFinish<T> finish, LiveUpdate live, bool last, unsigned* counter) {
  rule.in.follow(live);
  if (live.numbers) finish.slow.updates = live.numbers->updates;
  const bool slow_follow = finish.slow.follow_now();
  if (live.numbers && !live.numbers->finite) count = 0;
  for (int b = static_cast<int>(blockIdx.x); b < count; b += static_cast<int>(gridDim.x)) {
    const Block block = blocks[b];
    const Rule local = within(rule, block, factors);
    const T shrink = Rule::kShrinks ? local.in.rate * local.in.shrink : T(0);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int32_t at = k * 256 + static_cast<int32_t>(threadIdx.x);
      if (at < block.count) {
        const int64_t i = block.begin + at;
        if (shrink != 0) local.in.w[i] -= shrink * local.in.w[i];
        local(i);
        if (slow_follow) local.in.w[i] = finish.slow.followed(i, local.in.w[i]);
        finish_element(finish, i, local.in.w[i]);
      }
    }
  }
  if (last && live.numbers && last_of(counter, static_cast<int>(gridDim.x)) && threadIdx.x == 0)
    Advance{live}(0);
}

// A warp a block.
template <typename Value>
__global__ void sum_of_blocks(Value value, const Block* blocks, int count, SegmentSums* sums,
                              LiveUpdate live) {
  value.in.follow(live);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warps = static_cast<int>(gridDim.x * blockDim.x) / 32;
  for (int b = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / 32; b < count;
       b += warps) {
    const Block block = blocks[b];
    const Value local = within(value, block, nullptr);
    SegmentSums sum;
    for (int32_t i = lane; i < block.count; i += 32) local.add(block.begin + i, &sum);
    sum = {warp_all(sum.xx, Plus{}), warp_all(sum.yy, Plus{}), warp_all(sum.zz, Plus{}),
           warp_all(sum.xz, Plus{})};
    if (lane == 0) sums[b] = sum;
  }
}

#endif

// Applies a rule to every element of the table.
template <typename T, typename Rule>
void walk(Context& context, const Walk& how, const Rule& rule, const UpdateFinish<T>& finish) {
  const int64_t count = how.table.size();
  if (count == 0) {
    if (how.last && how.live) parallel_for(context, 1, Advance{*how.live});
    return;
  }
  const Block* const blocks = how.table.blocks();
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    static_assert(Block::kMost == 4 * 256);
    return launch(context.gpu(), run_blocks<T, Rule>, {grid_for(count), 256}, rule, blocks,
                  static_cast<int>(count), how.factors, finish, how.live ? *how.live : LiveUpdate{},
                  how.last, context.gpu().counters);
  }
#endif
#pragma omp parallel for schedule(static) if (count > 8)
  for (int64_t b = 0; b < count; ++b) {
    const Block block = blocks[b];
    const Rule local = within(rule, block, how.factors);
    const int64_t end = block.begin + block.count;
    const T shrink = Rule::kShrinks ? local.in.rate * local.in.shrink : T(0);
    if (shrink != 0) {
#pragma omp simd
      for (int64_t i = block.begin; i < end; ++i) local.in.w[i] -= shrink * local.in.w[i];
    }
#pragma omp simd
    for (int64_t i = block.begin; i < end; ++i) local(i);
    if (finish.slow.follow_now()) {
#pragma omp simd
      for (int64_t i = block.begin; i < end; ++i)
        local.in.w[i] = finish.slow.followed(i, local.in.w[i]);
    }
    if (!finish.average) continue;
#pragma omp simd
    for (int64_t i = block.begin; i < end; ++i) finish.averaged(i, local.in.w[i]);
  }
}

// The sums of each segment, in an order that depends on the table only. Value: `in` as a rule, and
// add(i, &sums) const.
template <typename Value>
void sum_segments(Context& context, const BlockTable& table, const Value& value,
                  const UpdateFactors& factors, const LiveUpdate* live) {
  SegmentSums* const partial = factors.partial();
  const Block* const blocks = table.blocks();
  const int64_t count = table.size();
  if (count == 0) return;
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    launch(context.gpu(), sum_of_blocks<Value>, {grid_for((count + 7) / 8), 256}, value, blocks,
           static_cast<int>(count), partial, live ? *live : LiveUpdate{});
    return factors.add_up(context, table);
  }
#endif
  (void)live;
#pragma omp parallel for schedule(static) if (count > 8)
  for (int64_t b = 0; b < count; ++b) {
    const Block block = blocks[b];
    const Value local = within(value, block, nullptr);
    SegmentSums sum;
    for (int64_t i = block.begin; i < block.begin + block.count; ++i) local.add(i, &sum);
    partial[b] = sum;
  }
  factors.add_up(context, table);
}

}  // namespace crema
