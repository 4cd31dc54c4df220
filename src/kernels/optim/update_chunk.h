// What a walk over an update's table needs for each chunk and each element, on both devices.
#pragma once

#include "base/host_device.h"
#include "kernels/optim/update_factors.h"
#include "kernels/optim/update_rules.h"
#include "tensor/half.h"

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
struct WeightCopies {
  uint16_t* half = nullptr;  // float16 or bfloat16; on a GPU only
  bool brain = false;
  T* average = nullptr;
  T keep = 0;
  SlowWeights<T> slow = {};
  CREMA_HD void averaged(int64_t i, T weight) const {
    average[i] = keep * average[i] + (1 - keep) * weight;
  }
  CREMA_HD uint16_t half_of(T weight) const {
    const float value = static_cast<float>(weight);
    return brain ? BFloat16(value).bits : Half(value).bits;
  }
};

// Advances counters and loss scale after an update.
struct Advance {
  LiveUpdate live;
  CREMA_HD void operator()(int64_t) const {
    DeviceUpdateState& n = *live.state;
    if (live.pass) ++*live.pass;
    ++n.updates;
    if (live.limits.skips && n.diverged) {
      n.finite = 1, n.diverged = 0;  // the next update counts again
      return;                        // and the loss scale had no part in it
    }
    if (!live.limits.scales_loss) return;
    const bool grow = n.finite && n.good + 1 >= live.limits.growth_after;
    if (!n.finite && n.loss_scale > 1) n.loss_scale /= 2;
    if (grow && n.loss_scale < 0x1p24f) n.loss_scale *= 2;
    n.good = n.finite && !grow ? n.good + 1 : 0;
  }
};

// The rule with the factors of one chunk applied.
template <typename Rule>
CREMA_HD Rule within(const Rule& rule, const Chunk& chunk, const SegmentFactor* factors) {
  Rule local = rule;
  local.in.rate *= chunk.lr_mult;
  local.in.penalty *= chunk.decay_mult;
  local.in.shrink *= chunk.decay_mult;
  if (factors) {
    local.in.scale *= factors[chunk.segment].gradient;
    local.in.rate = factors[chunk.segment].rate;
    local.in.weight = factors[chunk.segment].weight;
  }
  return local;
}

}  // namespace crema
