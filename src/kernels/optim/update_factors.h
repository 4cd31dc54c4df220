// Per-blob factors for gradients and learning rates: clipping by blob and by layer, and rates from
// the norms of weights and gradients (LARC, LARS, the ratio of LAMB).
#pragma once

#include "base/host_device.h"
#include "kernels/optim/update_state.h"
#include "kernels/optim/update_table.h"

namespace crema {

// With |w|, |g| the norms of a blob's weights and of its gradient (scaled, clipped, without decay),
//   larc  r = (1 - momentum) * eta * |w| / |g|
//   lars  r = eta * |w| / (|g| + weight_decay * |w|), weight_decay: the step's penalty + shrink
// r = 1 where a norm is 0. turbo: c = 0.95 * c + 0.05 * cosine(g, h) with the first history h, and
// r *= 1 - 0.9 * c. The blob's rate is rate * r (scale) or min(rate, r) (clip), without lr_mult.
struct FactorRules {
  enum class Rates { by_lr_mult, larc, lars };
  Rates rates = Rates::by_lr_mult;
  bool clip_rate = false, turbo = false;
  float eta = 0.001f;
  // Largest gradient norm of a blob and of a layer, both of the sum over iter_size batches; below
  // 0: no clipping. Layers are clipped first.
  float clip_blob = -1, clip_layer = -1;

  bool any() const { return rates != Rates::by_lr_mult || clip_blob >= 0 || clip_layer >= 0; }
};

// Per segment: gradient multiplies its gradient, rate is its learning rate (including lr_mult),
// weight multiplies its weights before the update.
struct SegmentFactor {
  float gradient, rate, weight;
};

// Sums over a segment of products of three values x, y, z per element.
struct SegmentSums {
  double xx = 0, yy = 0, zz = 0, xz = 0;
  CREMA_HD void add(const SegmentSums& other) {
    xx += other.xx;
    yy += other.yy;
    zz += other.zz;
    xz += other.xz;
  }
};

class UpdateFactors {
 public:
  UpdateFactors() = default;
  // `measures`: sums are needed even where the rules need none (LAMB, Muon that normalizes).
  UpdateFactors(Context& context, const FactorRules& rules, const ChunkTable& table, bool measures);

  const FactorRules& rules() const { return rules_; }
  SegmentSums* partial() const { return static_cast<SegmentSums*>(partial_.raw()); }
  SegmentFactor* factors() const { return static_cast<SegmentFactor*>(factors_.raw()); }
  // float32, one value per segment: c of turbo.
  Tensor correlations() const { return correlations_; }

  // Reduces partial(), one sum per chunk of the table, to one sum per segment.
  void add_up(Context& context, const ChunkTable& table) const;
  // Computes the factors from sums where x is the gradient as the rules see it, y the weights and z
  // the history. `batches`: what the gradient was divided by. live: null on a CPU.
  void decide(Context& context, const ChunkTable& table, const Hyperparameters& at, float batches,
              const LiveUpdate* live) const;
  // The same for LAMB: x is its step, y the weights.
  void decide_ratios(Context& context, const ChunkTable& table, const Hyperparameters& at,
                     const LiveUpdate* live) const;
  // For Muon that normalizes: y are the weights, whose norm becomes sqrt(rows). Leaves the other
  // factors of earlier decisions as they are.
  void decide_norms(Context& context, const ChunkTable& table, const Hyperparameters& at,
                    const LiveUpdate* live) const;

 private:
  SegmentSums* sums() const { return static_cast<SegmentSums*>(sums_.raw()); }

  FactorRules rules_;
  Tensor partial_, sums_, factors_, correlations_;
};

}  // namespace crema
