// Walks over the chunks of an update's table: applies a rule, or computes sums per segment. For .cu
// files only, like device/parallel.h.
#pragma once

#include "base/ceil_div.h"
#include "device/parallel.h"
#include "kernels/optim/update_chunk.h"
#ifdef __CUDACC__
#include "kernels/optim/update_walk_gpu.cuh"
#endif

namespace crema {

// One walk of an update. last: it advances the counters at its end.
struct Walk {
  const ChunkTable& table;
  const SegmentFactor* factors = nullptr;
  const LiveUpdate* live = nullptr;
  bool last = true;
};

// Applies a rule to every element of the table. clear_gradient (on a GPU): null, or the gradients,
// of which those of segments that say so are cleared, even in an update that is skipped.
template <typename T, typename Rule>
void walk(Context& context, const Walk& how, const Rule& rule, const WeightCopies<T>& copies = {},
          T* clear_gradient = nullptr) {
  const int64_t count = how.table.size();
  if (count == 0) {
    if (how.last && how.live) parallel_for(context, 1, Advance{*how.live});
    return;
  }
  const Chunk* const chunks = how.table.chunks();
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    static_assert(Chunk::kMax == 4 * 256);
    return launch(context.gpu(), update_chunks<T, Rule>, {blocks_for_chunks(count), 256}, rule,
                  chunks, static_cast<int>(count), how.factors, copies, clear_gradient,
                  how.live ? *how.live : LiveUpdate{}, how.last, context.gpu().counters);
  }
#endif
  (void)clear_gradient;
  // A loop per step, so that each vectorises: what is kept besides the weights is the same for the
  // whole chunk, and the chunk stays in the cache.
#pragma omp parallel for schedule(static) if (count > 8)
  for (int64_t c = 0; c < count; ++c) {
    const Chunk chunk = chunks[c];
    const Rule local = within(rule, chunk, how.factors);
    const int64_t end = chunk.begin + chunk.count;
    const T shrink = Rule::kShrinks ? local.in.rate * local.in.shrink : T(0);
    if (shrink != 0) {
#pragma omp simd
      for (int64_t i = chunk.begin; i < end; ++i) local.in.w[i] -= shrink * local.in.w[i];
    }
#pragma omp simd
    for (int64_t i = chunk.begin; i < end; ++i) local(i);
    if (copies.slow.follow_now()) {
#pragma omp simd
      for (int64_t i = chunk.begin; i < end; ++i)
        local.in.w[i] = copies.slow.followed(i, local.in.w[i]);
    }
    if (!copies.average) continue;
#pragma omp simd
    for (int64_t i = chunk.begin; i < end; ++i) copies.averaged(i, local.in.w[i]);
  }
}

// Sums per segment, in an order that depends on the table only. Value: has `in` like a rule, and
// add(i, &sums) const.
template <typename Value>
void sum_segments(Context& context, const ChunkTable& table, const Value& value,
                  const UpdateFactors& factors, const LiveUpdate* live) {
  SegmentSums* const partial = factors.partial();
  const Chunk* const chunks = table.chunks();
  const int64_t count = table.size();
  if (count == 0) return;
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    launch(context.gpu(), sum_of_chunks<Value>, {blocks_for_chunks(ceil_div(count, 8)), 256}, value,
           chunks, static_cast<int>(count), partial, live ? *live : LiveUpdate{});
    return factors.add_up(context, table);
  }
#endif
  (void)live;
#pragma omp parallel for schedule(static) if (count > 8)
  for (int64_t c = 0; c < count; ++c) {
    const Chunk chunk = chunks[c];
    const Value local = within(value, chunk, nullptr);
    SegmentSums sum;
    for (int64_t i = chunk.begin; i < chunk.begin + chunk.count; ++i) local.add(i, &sum);
    partial[c] = sum;
  }
  factors.add_up(context, table);
}

}  // namespace crema
