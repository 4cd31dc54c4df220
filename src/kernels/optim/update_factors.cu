#include "kernels/optim/update_factors.h"

#include <cmath>

#include "base/ceil_div.h"
#include "device/parallel.h"
#ifdef __CUDACC__
#include "kernels/core/warp.cuh"
#endif

namespace crema {
namespace {

CREMA_HD inline Hyperparameters now(const Hyperparameters& at, const LiveUpdate& live) {
  return live.state ? live.state->rates[live.state->updates % DeviceUpdateState::kRates] : at;
}

CREMA_HD inline double part_within(double norm, double limit) {
  return limit >= 0 && norm > limit ? limit / norm : 1;
}

struct Decide {
  FactorRules rules;
  const SegmentSpan* spans;
  const SegmentSums* sums;
  SegmentFactor* factors;
  float* correlations;
  Hyperparameters at;
  double batches;
  LiveUpdate live;

  CREMA_HD void operator()(int64_t s) const {
    if (live.state && !live.state->finite) return;  // the update is skipped
    const Hyperparameters rates = now(at, live);
    const SegmentSpan& span = spans[s];
    double gradient = 1;
    if (rules.clip_layer >= 0) {
      double all = 0;
      for (int32_t other = span.layer_begin; other < span.layer_end; ++other) all += sums[other].xx;
      gradient = part_within(std::sqrt(all) * batches, rules.clip_layer);
    }
    const double norm = std::sqrt(sums[s].xx);
    gradient *= part_within(norm * batches * gradient, rules.clip_blob);
    factors[s].weight = 1;
    factors[s].gradient = static_cast<float>(gradient);
    factors[s].rate = rules.rates == FactorRules::Rates::by_lr_mult
                          ? rates.rate * span.lr_mult
                          : local_rate(rates, norm * gradient, s);
  }

  CREMA_HD float local_rate(const Hyperparameters& rates, double g, int64_t s) const {
    const double w = std::sqrt(sums[s].yy), decay = rates.penalty + rates.shrink;
    double ratio = 1;
    if (w > 0 && g > 0) {
      ratio = rules.rates == FactorRules::Rates::larc ? (1 - rates.momentum) * rules.eta * w / g
                                                      : rules.eta * w / (g + decay * w);
    }
    if (rules.turbo) {
      const double lengths = std::sqrt(sums[s].xx * sums[s].zz);
      const double cosine = lengths > 0 ? sums[s].xz / lengths : 0;
      correlations[s] = static_cast<float>(0.95 * correlations[s] + 0.05 * cosine);
      ratio *= 1 - 0.9 * correlations[s];
    }
    const double rate = rates.rate;
    return static_cast<float>(rules.clip_rate ? (rate < ratio ? rate : ratio) : rate * ratio);
  }
};

struct DecideRatios {
  const SegmentSpan* spans;
  const SegmentSums* sums;
  SegmentFactor* factors;
  Hyperparameters at;
  LiveUpdate live;
  CREMA_HD void operator()(int64_t s) const {
    const double step = std::sqrt(sums[s].xx), w = std::sqrt(sums[s].yy);
    const double ratio = step > 0 && w > 0 ? w / step : 1;
    factors[s] = {1, static_cast<float>(now(at, live).rate * spans[s].lr_mult * ratio), 1};
  }
};

struct DecideNorms {
  const SegmentSpan* spans;
  const SegmentSums* sums;
  SegmentFactor* factors;
  bool decided;  // gradient and rate
  Hyperparameters at;
  LiveUpdate live;
  CREMA_HD void operator()(int64_t s) const {
    const double w = std::sqrt(sums[s].yy);
    if (!decided) factors[s] = {1, now(at, live).rate * spans[s].lr_mult, 1};
    if (w > 0) factors[s].weight = static_cast<float>(std::sqrt(spans[s].rows) / w);
  }
};

#ifdef __CUDACC__
// One warp per segment.
__global__ void sum_of_segments(const SegmentSpan* spans, int count, const SegmentSums* chunks,
                                SegmentSums* sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int s = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (s >= count) return;
  SegmentSums sum;
  for (int32_t i = lane; i < spans[s].chunks; i += 32) sum.add(chunks[spans[s].first_chunk + i]);
  sum = {warp_all(sum.xx, Plus{}), warp_all(sum.yy, Plus{}), warp_all(sum.zz, Plus{}),
         warp_all(sum.xz, Plus{})};
  if (lane == 0) sums[s] = sum;
}
#endif

}  // namespace

UpdateFactors::UpdateFactors(Context& context, const FactorRules& rules, const ChunkTable& table,
                             bool measures)
    : rules_(rules) {
  if (!rules.any() && !measures) return;
  const auto bytes = [&](int64_t count, size_t each) {
    return Tensor(context, Shape{count * static_cast<int64_t>(each)}, DType::u8);
  };
  partial_ = bytes(table.size(), sizeof(SegmentSums));
  sums_ = bytes(table.segments(), sizeof(SegmentSums));
  factors_ = bytes(table.segments(), sizeof(SegmentFactor));
  if (rules.turbo) correlations_ = Tensor(context, Shape{table.segments()}, DType::f32);
}

void UpdateFactors::add_up(Context& context, const ChunkTable& table) const {
  if (table.segments() == 0) return;
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    return launch(context.gpu(), sum_of_segments,
                  {static_cast<unsigned>(ceil_div(table.segments(), 8)), 256}, table.spans(),
                  static_cast<int>(table.segments()), partial(), sums());
  }
#endif
  (void)context;
  for (int64_t s = 0; s < table.segments(); ++s) {
    const SegmentSpan& span = table.spans()[s];
    SegmentSums sum;
    for (int32_t i = 0; i < span.chunks; ++i) sum.add(partial()[span.first_chunk + i]);
    sums()[s] = sum;
  }
}

void UpdateFactors::decide(Context& context, const ChunkTable& table, const Hyperparameters& at,
                           float batches, const LiveUpdate* live) const {
  parallel_for(context, table.segments(),
               Decide{rules_, table.spans(), sums(), factors(), correlations_.data<float>(), at,
                      batches, live ? *live : LiveUpdate{}});
}

void UpdateFactors::decide_ratios(Context& context, const ChunkTable& table,
                                  const Hyperparameters& at, const LiveUpdate* live) const {
  parallel_for(context, table.segments(),
               DecideRatios{table.spans(), sums(), factors(), at, live ? *live : LiveUpdate{}});
}

void UpdateFactors::decide_norms(Context& context, const ChunkTable& table,
                                 const Hyperparameters& at, const LiveUpdate* live) const {
  parallel_for(
      context, table.segments(),
      DecideNorms{table.spans(), sums(), factors(), rules_.any(), at, live ? *live : LiveUpdate{}});
}

}  // namespace crema
