// Walks over the blocks of an update's table: applies a rule, or computes sums per segment. For .cu
// files only, like device/parallel.h.
#pragma once

#include "device/parallel.h"
#include "kernels/optim/update_factors.h"
#include "kernels/optim/update_rules.h"
#include "tensor/half.h"
#ifdef __CUDACC__
#include "kernels/core/pack.h"
#include "kernels/core/warp.cuh"
#endif

namespace crema {

// Slow weights: every so many updates they move towards the weights and then replace them.
template <typename T>
struct SlowWeights {
  T* slow = nullptr;
  T length = 0;
  uint64_t every = 1;
  uint64_t updates = 0;  // before this one
  CREMA_HD bool follow_now() const { return slow && (updates + 1) % every == 0; }
  CREMA_HD T followed(int64_t i, T weight) const { return slow[i] += length * (weight - slow[i]); }
};

// Where a new weight is stored besides the weights themselves.
template <typename T>
struct UpdateFinish {
  uint16_t* half = nullptr;  // float16 or bfloat16
  bool brain = false;
  T* average = nullptr;
  T keep = 0;
  SlowWeights<T> slow = {};
  T* cleared = nullptr;  // the gradient, for blocks that clear it
  CREMA_HD void averaged(int64_t i, T weight) const {
    average[i] = keep * average[i] + (1 - keep) * weight;
  }
  CREMA_HD uint16_t half_of(T weight) const {
    const float value = static_cast<float>(weight);
    return brain ? BFloat16(value).bits : Half(value).bits;
  }
};

// One walk of an update. last: it advances the counters at its end.
struct Walk {
  const BlockTable& table;
  const SegmentFactor* factors = nullptr;
  const LiveUpdate* live = nullptr;
  bool last = true;
};

// Advances counters and loss scale after an update.
struct Advance {
  LiveUpdate live;
  CREMA_HD void operator()(int64_t) const {
    UpdateParams& n = *live.params;
    if (live.pass) ++*live.pass;
    ++n.updates;
    if (!live.limits.scales_loss) return;
    const bool grow = n.finite && n.good + 1 >= live.limits.growth_after;
    if (!n.finite && n.loss_scale > 1) n.loss_scale /= 2;
    if (grow && n.loss_scale < 0x1p24f) n.loss_scale *= 2;
    n.good = n.finite && !grow ? n.good + 1 : 0;
  }
};

// The rule with the factors of one block applied.
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

// Only as many CUDA blocks as are resident: each ends with an atomic count, which costs more than
// processing one more Block.
constexpr int kUpdateBlocks = 5;  // per multiprocessor
inline unsigned grid_for(int64_t blocks) {
  return static_cast<unsigned>(std::clamp<int64_t>(blocks, 1, kUpdateBlocks * 132));
}

// Applies the rule to four adjacent elements in registers, with one load and one store per arena.
template <typename T, typename Rule>
__device__ void run_four(const Rule& rule, T shrink, int64_t at, const UpdateFinish<T>& finish) {
  using Four = Pack<T, 4>;
  const auto load = [&](const T* from) {
    return from ? *reinterpret_cast<const Four*>(from + at) : Four{};
  };
  const auto store = [&](T* to, const Four& values) {
    if (to) *reinterpret_cast<Four*>(to + at) = values;
  };
  Four diff = load(rule.in.diff), w = load(rule.in.w), h = load(rule.in.h), k = load(rule.in.k),
       average = load(finish.average), slow = load(finish.slow.slow);
  Rule local = rule;
  local.in.diff = diff.v, local.in.w = w.v, local.in.h = h.v, local.in.k = k.v;
  UpdateFinish<T> of_four = finish;
  of_four.average = average.v, of_four.slow.slow = slow.v;
  Pack<uint16_t, 4> half;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (shrink != 0) w.v[j] -= shrink * w.v[j];
    local(j);
    if (finish.slow.slow) w.v[j] = of_four.slow.followed(j, w.v[j]);
    of_four.averaged(j, w.v[j]);
    half.v[j] = finish.half_of(w.v[j]);
  }
  if constexpr (!requires { Rule::kOnlyWeights; }) {
    store(rule.in.h, h);
    store(rule.in.k, k);
  }
  store(rule.in.w, w);
  store(finish.average, average);
  store(finish.slow.slow, slow);
  if (finish.half) *reinterpret_cast<Pack<uint16_t, 4>*>(finish.half + at) = half;
}

// Clears this thread's part of a block's gradient.
template <typename T>
__device__ void clear_four(const Block& block, T* diff) {
  const int32_t first = 4 * static_cast<int32_t>(threadIdx.x);
  for (int32_t at = first; at < min(first + 4, block.count); ++at) diff[block.begin + at] = 0;
}

// Each thread has four elements of each Block. The load of the first Block is in flight while the
// iteration's parameters are read.
template <typename T, typename Rule>
__global__ void __launch_bounds__(256, sizeof(T) == 4 ? kUpdateBlocks : 3)
    run_blocks(Rule rule, const Block* blocks, int count, const SegmentFactor* factors,
               UpdateFinish<T> finish, LiveUpdate live, bool last, unsigned* counter) {
  const int step = static_cast<int>(gridDim.x);
  int b = static_cast<int>(blockIdx.x);
  Block next = blocks[b];
  rule.in.follow(live);
  if (live.params) finish.slow.updates = live.params->updates;
  if (!finish.slow.follow_now()) finish.slow.slow = nullptr;
  if (live.params && !live.params->finite) {
    for (; b < count; b += step) {
      if (finish.cleared && blocks[b].clears) clear_four(blocks[b], finish.cleared);
    }
  }
  for (; b < count; b += step) {
    const Block block = next;
    next = blocks[b + step < count ? b + step : b];
    const Rule local = within(rule, block, factors);
    const T shrink = Rule::kShrinks ? local.in.rate * local.in.shrink : T(0);
    const int32_t first = 4 * static_cast<int32_t>(threadIdx.x);
    if (first + 4 <= block.count) {
      run_four(local, shrink, block.begin + first, finish);
    } else {
      for (int32_t at = first; at < block.count; ++at) {
        const int64_t i = block.begin + at;
        if (shrink != 0) local.in.w[i] -= shrink * local.in.w[i];
        local(i);
        if (finish.slow.slow) local.in.w[i] = finish.slow.followed(i, local.in.w[i]);
        if (finish.average) finish.averaged(i, local.in.w[i]);
        if (finish.half) finish.half[i] = finish.half_of(local.in.w[i]);
      }
    }
    if (finish.cleared && block.clears) clear_four(block, finish.cleared);
  }
  if (last && live.params && last_of(counter, static_cast<int>(gridDim.x)) && threadIdx.x == 0)
    Advance{live}(0);
}

// One warp per Block.
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
    static_assert(Block::kMax == 4 * 256);
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

// Sums per segment, in an order that depends on the table only. Value: has `in` like a rule, and
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
