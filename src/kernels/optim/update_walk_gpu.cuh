// The GPU kernels of kernels/optim/update_walk.h. Only for device code.
#pragma once

#include <algorithm>

#include "device/launch.h"
#include "device/multiprocessors.h"
#include "kernels/core/pack.h"
#include "kernels/core/warp.cuh"
#include "kernels/optim/update_chunk.h"

namespace crema {

// Only as many CUDA blocks as are resident: each ends with an atomic count, which costs more than
// processing one more chunk.
constexpr int kResidentBlocks = 5;  // per multiprocessor
inline unsigned blocks_for_chunks(int64_t chunks) {
  constexpr int64_t kMost = kResidentBlocks * kTypicalMultiprocessors;
  return static_cast<unsigned>(std::clamp<int64_t>(chunks, 1, kMost));
}

// Element i: decoupled decay, the rule, slow weights (where follow), average, 16-bit copy.
template <typename T, typename Rule>
__device__ void update_element(const Rule& rule, T shrink, bool follow, int64_t i,
                               const WeightCopies<T>& copies) {
  T* const w = rule.in.w;
  if (shrink != 0) w[i] -= shrink * w[i];
  rule(i);
  if (follow) w[i] = copies.slow.followed(i, w[i]);
  if (copies.average) copies.averaged(i, w[i]);
  if (copies.half) copies.half[i] = copies.half_of(w[i]);
}

// Four adjacent elements in registers, with one load and one store per arena.
template <typename T, typename Rule>
__device__ void update_four(const Rule& rule, T shrink, int64_t at, const WeightCopies<T>& copies) {
  using Four = Pack<T, 4>;
  const auto load = [&](const T* from) {
    return from ? *reinterpret_cast<const Four*>(from + at) : Four{};
  };
  const auto store = [&](T* to, const Four& values) {
    if (to) *reinterpret_cast<Four*>(to + at) = values;
  };
  Four diff = load(rule.in.diff), w = load(rule.in.w), h = load(rule.in.h), k = load(rule.in.k),
       average = load(copies.average), slow = load(copies.slow.slow);
  Rule local = rule;
  local.in.diff = diff.v, local.in.w = w.v, local.in.h = h.v, local.in.k = k.v;
  // Average and half are computed always: in registers that costs less than a branch.
  WeightCopies<T> of_four = copies;
  Pack<uint16_t, 4> half;
  of_four.average = average.v, of_four.slow.slow = slow.v, of_four.half = half.v;
#pragma unroll
  for (int j = 0; j < 4; ++j)
    update_element(local, shrink, copies.slow.slow != nullptr, j, of_four);
  if constexpr (!requires { Rule::kOnlyWeights; }) {
    store(rule.in.h, h);
    store(rule.in.k, k);
  }
  store(rule.in.w, w);
  store(copies.average, average);
  store(copies.slow.slow, slow);
  if (copies.half) *reinterpret_cast<Pack<uint16_t, 4>*>(copies.half + at) = half;
}

// Clears this thread's part of a chunk's gradient.
template <typename T>
__device__ void clear_four(const Chunk& chunk, T* diff) {
  const int32_t first = 4 * static_cast<int32_t>(threadIdx.x);
  for (int32_t at = first; at < min(first + 4, chunk.count); ++at) diff[chunk.begin + at] = 0;
}

// Each thread has four elements of each chunk. The load of the first chunk is in flight while the
// iteration's parameters are read. clear_gradient: null, or the gradients, of which those of chunks
// that say so are cleared.
template <typename T, typename Rule>
__global__ void __launch_bounds__(256, sizeof(T) == 4 ? kResidentBlocks : 3)
    update_chunks(Rule rule, const Chunk* chunks, int count, const SegmentFactor* factors,
                  WeightCopies<T> copies, T* clear_gradient, LiveUpdate live, bool last,
                  unsigned* counter) {
  const int step = static_cast<int>(gridDim.x);
  int c = static_cast<int>(blockIdx.x);
  Chunk next = chunks[c];
  rule.in.read_live(live);
  if (live.state) copies.slow.updates = live.state->updates;
  if (!copies.slow.follow_now()) copies.slow.slow = nullptr;
  const bool skipped = live.state && !live.state->finite;
  if (skipped) {  // moves c to the end: the loop after this one then has nothing to do
    for (; c < count; c += step) {
      if (clear_gradient && chunks[c].clear_gradient) clear_four(chunks[c], clear_gradient);
    }
  }
  for (; c < count; c += step) {
    const Chunk chunk = next;
    next = chunks[c + step < count ? c + step : c];
    const Rule local = within(rule, chunk, factors);
    const T shrink = Rule::kShrinks ? local.in.rate * local.in.shrink : T(0);
    const int32_t first = 4 * static_cast<int32_t>(threadIdx.x);
    if (first + 4 <= chunk.count) {
      update_four(local, shrink, chunk.begin + first, copies);
    } else {
      for (int32_t at = first; at < chunk.count; ++at)
        update_element(local, shrink, copies.slow.slow != nullptr, chunk.begin + at, copies);
    }
    if (clear_gradient && chunk.clear_gradient) clear_four(chunk, clear_gradient);
  }
  if (last && live.state && last_of(counter, static_cast<int>(gridDim.x)) && threadIdx.x == 0)
    Advance{live}(0);
}

// One warp per chunk.
template <typename Value>
__global__ void sum_of_chunks(Value value, const Chunk* chunks, int count, SegmentSums* sums,
                              LiveUpdate live) {
  value.in.read_live(live);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warps = static_cast<int>(gridDim.x * blockDim.x) / 32;
  for (int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / 32; c < count;
       c += warps) {
    const Chunk chunk = chunks[c];
    const Value local = within(value, chunk, nullptr);
    SegmentSums sum;
    for (int32_t i = lane; i < chunk.count; i += 32) local.add(chunk.begin + i, &sum);
    sum = {warp_all(sum.xx, Plus{}), warp_all(sum.yy, Plus{}), warp_all(sum.zz, Plus{}),
           warp_all(sum.xz, Plus{})};
    if (lane == 0) sums[c] = sum;
  }
}

}  // namespace crema
