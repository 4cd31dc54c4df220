// Update rules: one pass over all parameters of a net turns gradients into new weights and new
// optimizer state. With
//   g = scale (of the settings) * gradient_scale (of the device's state: clipping of the norm,
//       1 / loss scale) * SegmentFactor::gradient (clipping by blob and by layer) * diff,
//       clipped to [-limit, limit], + penalty (L2: decay * w, L1: decay * sign(w))
// rate and decay multiplied by each segment's own factors, w a weight, h and k its histories:
//   SGD       h = rate * g + momentum * h
//             w -= h
//   Nesterov  old = h; h = rate * g + momentum * h
//             w -= (1 + momentum) * h - momentum * old
//   AdaGrad   h += g^2
//             w -= rate * g / (sqrt(h) + delta)
//   RMSProp   h = rms_decay * h + (1 - rms_decay) * g^2
//             w -= rate * g / (sqrt(h) + delta)
//   AdaDelta  h = momentum * h + (1 - momentum) * g^2
//             u = g * sqrt((delta + k) / (delta + h))
//             k = momentum * k + (1 - momentum) * u^2
//             w -= rate * u
//   Adam      h = momentum * h + (1 - momentum) * g
//             k = momentum2 * k + (1 - momentum2) * g^2
//             w -= rate * correction * h / (sqrt(k) + delta)
//             correction = sqrt(1 - momentum2^t) / (1 - momentum^t), t = iteration + 1
//             amsgrad: k never decreases; without `divides`: w -= rate * correction * h;
//             belief: k = momentum2 * k + (1 - momentum2) * (g - h)^2 + delta
//   AdamW     as Adam
//   LAMB      h, k as Adam; u = correction * h / (sqrt(k) + delta) + shrink * w
//             w -= rate * |w| / |u| * u      norms of the segment; a ratio with a zero is 1
//   Lion      w -= rate * sign(momentum * h + (1 - momentum) * g)
//             h = momentum2 * h + (1 - momentum2) * g
//   Muon      matrices: h = momentum * h + g; k = orthogonal(g + momentum * h), see
//             newton_schulz.h
//             w -= rate * k;  all other segments as AdamW or Nesterov, with their own momentum;
//             where it normalizes: w *= sqrt(rows) / |w| first
// Before the rule, except in LAMB, decoupled decay shrinks the weights: w -= rate * shrink * w.
// After it, where slow weights are kept, at every slow_every-th update: slow += slow_length * (w -
// slow), w = slow. Then, where an average is kept: average = keep * average + (1 - keep) * w. Where
// a quotient would be 0 / 0, nothing is added to the weight.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/optim/newton_schulz.h"
#include "kernels/optim/update_factors.h"
#include "kernels/optim/update_rule.h"
#include "tensor/tensor.h"

namespace crema {

// What an update needs besides the arenas.
struct UpdateSettings {
  Hyperparameters at;
  float scale = 1;    // of the gradient: clipping, and 1 / batches
  float batches = 1;  // number of batches whose gradients were summed: iter_size
  float limit = -1;   // elements of the gradient are clipped to it; below 0: no clipping
  bool l1 = false;
  float momentum2 = 0.999f, delta = 1e-8f, rms_decay = 0.99f;
  bool amsgrad = false, belief = false;
  float keep = 0;  // decay of the average
  float slow_length = 0;
  int64_t slow_every = 1;
  int64_t iteration = 0;  // number of previous updates, where no LiveUpdate counts them
};

// The arenas (one axis, one dtype, float or double) that an update reads (diff) and changes.
struct UpdateArenas {
  Tensor data, diff;
  std::vector<Tensor> history;
  Tensor half;     // copy of data in 16 bits, or empty
  Tensor average;  // moving average of the weights, or empty
  Tensor slow;     // slow weights (Lookahead), or empty
};

// How a rule whose scope is the matrix divides the segments.
struct MatrixParts {
  MuonOptions options;
  ChunkTable matrices, others;
  std::optional<NewtonSchulz> newton_schulz;
};

// Created once per net. Segments with lr_mult 0 are not updated.
class Update {
 public:
  Update(Context& context, const RuleTraits& rule, const std::vector<Segment>& segments,
         const FactorRules& factors = {}, DType dtype = DType::f32, const MuonOptions& muon = {});

  // Sum of the squares of all gradients, or weights, in an order that depends on the segments only.
  // In double, but a GPU squares and adds up to four of them in the arena's own type first: there a
  // finite float above 1.8e19 makes the sum infinite.
  double squared_norm(Context& context, const Tensor& arena) const;
  // live (on a GPU): supplies the hyperparameters instead of the settings, and gradient_scale;
  // run() then advances its counters and loss scale.
  enum class Part { all, early, late };
  void run(Context& context, const UpdateSettings& settings, const UpdateArenas& arenas,
           const LiveUpdate* live = nullptr, Part part = Part::all) const;
  // Sets the same segments with other clear_gradient flags. With early segments, run() can update
  // those first and the others later, which advances the counters. Returns false where there are
  // none, or where the rule needs all gradients before it changes a weight.
  bool set_segments(Context& context, const std::vector<Segment>& segments,
                    const std::function<bool(const Segment&)>& early);
  // On a GPU, before run() where the limits need it: computes norm, gradient_scale and finite
  // from the gradient. sum: queues the replacement of the sum of squares, in device memory, by that
  // of all ranks, where each has a part of the gradient.
  void measure(Context& context, const Tensor& diff, const LiveUpdate& live,
               const std::function<void(double* squares)>& sum = {}) const;
  // Swaps weights and average; weights that no update changes stay.
  void exchange(Context& context, const Tensor& data, const Tensor& average) const;
  // One value per segment with lr_mult: the state of larc_turbo.
  Tensor correlations() const { return factors_.correlations(); }

 private:
  void divide_matrices(Context& context, const std::vector<Segment>& segments);
  void sum_chunks(Context& context, const Tensor& diff, const LiveUpdate* live,
                  double* total) const;

  const RuleTraits& rule_;
  ChunkTable table_;
  ChunkTable early_, late_;  // of the split update
  MatrixParts parts_;
  UpdateFactors factors_;
  Tensor partial_;  // a sum of squares per chunk, on a GPU per CUDA block
  Tensor total_;    // their sum, on a GPU
};

}  // namespace crema
