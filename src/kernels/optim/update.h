// Update rules: one pass over all parameters of a net turns gradients into new weights and new
// optimizer state. With g = scale * diff, cut to [-limit, limit], + penalty (L2: decay * w, L1:
// decay * sign(w)) and rate, decay multiplied by each segment's own factors:
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
//             with amsgrad k is never less than before; without `divides` w -= rate * correction *
//             h; with belief k = momentum2 * k + (1 - momentum2) * (g - h)^2 + delta
//   AdamW     as Adam
//   LAMB      h, k as Adam; u = correction * h / (sqrt(k) + delta) + shrink * w
//             w -= rate * |w| / |u| * u      norms of the segment; a ratio with a zero is 1
//   Lion      w -= rate * sign(momentum * h + (1 - momentum) * g)
//             h = momentum2 * h + (1 - momentum2) * g
//   Muon      matrices: h = momentum * h + g; k = orthogonal(g + momentum * h)
//   (kernels/optim/newton_schulz.h)
//             w -= rate * k;  all other segments as AdamW
// Before, and in all but LAMB, the weights shrink (decoupled decay): w -= rate * shrink * w.
// After, where slow weights are kept, at every slow_every-th update: slow += slow_length * (w -
// slow), w = slow.
// Then, where an average is kept: average = keep * average + (1 - keep) * w.
// Where 0 / 0 would come out, nothing is added to the weight.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/optim/newton_schulz.h"
#include "kernels/optim/update_factors.h"
#include "tensor/tensor.h"

namespace crema {

enum class UpdateRule { sgd, nesterov, adagrad, rmsprop, adadelta, adam, adamw, lamb, lion, muon };

// By name ("SGD", "AdaGrad"...), in any case; Error with near names.
UpdateRule update_rule(const std::string& name);
// Arenas of optimizer state that a rule keeps: 1, or 2 (AdaDelta, Adam, AdamW, LAMB, Muon).
int history_count(UpdateRule rule);
// Whether weight decay shrinks the weights instead of adding to the gradient.
bool always_decoupled(UpdateRule rule);

struct UpdateStep {
  UpdateRates at;
  float scale = 1;    // of the gradient: clipping, and 1 / batches
  float batches = 1;  // whose gradients were summed: iter_size
  float limit = -1;   // largest element of a gradient; below 0: none
  bool l1 = false;
  float momentum2 = 0.999f, delta = 1e-8f, rms_decay = 0.99f;
  bool amsgrad = false, belief = false;
  float keep = 0;  // of the average
  float slow_length = 0;
  int64_t slow_every = 1;
  int64_t iteration = 0;  // updates before this one, where none is live
};

// The arenas (one axis, one dtype, float or double) that an update reads (diff) and changes.
struct UpdateArenas {
  Tensor data, diff;
  std::vector<Tensor> history;
  Tensor half;     // a copy of data in 16 bits, or empty
  Tensor average;  // of the weights over the updates, or empty
  Tensor slow;     // weights that follow from time to time, or empty
};

// Made once for a net. Segments with lr_mult 0 are left alone.
class Update {
 public:
  Update(Context& context, UpdateRule rule, const std::vector<Segment>& segments,
         const FactorRules& factors = {}, DType dtype = DType::f32);

  // Sum of the squares of all gradients, in double and in an order that depends on the segments
  // only.
  double squared_norm(Context& context, const Tensor& diff) const;
  // live (on a GPU): its rates instead of the step's, and its factor for the step's scale; counters
  // and loss scale move on afterwards.
  enum class Part { all, early, late };
  void run(Context& context, const UpdateStep& step, const UpdateArenas& arenas,
           const LiveUpdate* live = nullptr, Part part = Part::all) const;
  // The same segments again, of which others may be cleared now. run() can take the early ones
  // first, and then the others, with which the counters move on: unless there are none, or a rule
  // looks at all gradients before it changes a weight; then false.
  bool renew(Context& context, const std::vector<Segment>& segments,
             const std::function<bool(const Segment&)>& early);
  // On a GPU, before run() where limits ask for it: norm, factor and finite from the gradient.
  void measure(Context& context, const Tensor& diff, const LiveUpdate& live) const;
  // Weights and average change places; what no update changes stays.
  void exchange(Context& context, const Tensor& data, const Tensor& average) const;
  // One number a segment with lr_mult: what larc_turbo remembers.
  Tensor correlations() const { return factors_.correlations(); }

  // The correction of Adam and its relatives after `iteration` updates; 1 for other rules.
  static float correction(UpdateRule rule, float momentum, float momentum2, int64_t iteration);

 private:
  void make_tables(Context& context, const std::vector<Segment>& segments);
  void sum_blocks(Context& context, const Tensor& diff, const LiveUpdate* live) const;

  UpdateRule rule_;
  BlockTable table_;
  BlockTable early_, late_;       // of the divided update
  BlockTable matrices_, others_;  // of Muon
  UpdateFactors factors_;
  std::optional<Orthogonalizer> orthogonalizer_;
  Tensor partial_;  // a sum of squares for each block, on a GPU for each CUDA block
};

}  // namespace crema
