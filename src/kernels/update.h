// Update rules: one pass over all parameters of a net turns gradients into new weights and new
// optimizer state. With g = scale * diff + decay (L2: decay * w, L1: decay * sign(w)) and rate,
// decay multiplied by each segment's own factors:
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
// Where 0 / 0 would come out, nothing is added to the weight.
#pragma once

#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace crema {

enum class UpdateRule { sgd, nesterov, adagrad, rmsprop, adadelta, adam };

// By Caffe's name ("SGD", "AdaGrad"...); Error with near names.
UpdateRule update_rule(const std::string& name);
// Arenas of optimizer state that a rule keeps: 1, or 2 (AdaDelta, Adam).
int history_count(UpdateRule rule);

// A run of elements with the same factors, in the arenas of weights, gradients and optimizer state
// alike.
struct Segment {
  int64_t offset = 0, count = 0;
  float lr_mult = 1, decay_mult = 1;
};

struct UpdateStep {
  float rate = 0;
  float scale = 1;  // of the gradient: clipping, and 1 / iter_size
  float weight_decay = 0;
  bool l1 = false;
  float momentum = 0, momentum2 = 0.999f, delta = 1e-8f, rms_decay = 0.99f;
  int64_t iteration = 0;  // updates done before this one
};

// The numbers of an update that change from one to the next, in the GPU's memory: kernels that a
// CUDA graph repeats read them there.
struct UpdateNumbers {
  static constexpr int64_t kRates = 1024;
  float rates[kRates] = {};  // of update n at n % kRates
  uint64_t updates = 0;      // done so far
  double norm = 0;           // of the last gradient
  float factor = 1;          // of the gradient: clipping, 1 / loss scale
  float loss_scale = 1;
  int32_t finite = 1;  // 0: the gradient had infinities, the update is left out
  int32_t good = 0;    // updates since the loss scale changed
};

// How the numbers change with each update.
struct UpdateLimits {
  double clip = -1;             // largest norm; below 0: none
  bool scales_loss = false;     // float16: the scale is halved at infinities and doubled when
  int32_t growth_after = 2000;  // that many updates went well
};

// What an update on a GPU reads and moves on, there.
struct LiveUpdate {
  UpdateNumbers* numbers = nullptr;
  UpdateLimits limits;
  uint64_t* pass = nullptr;  // null: somebody else's
};

// Made once for a net. Segments with lr_mult 0 are left alone.
class Update {
 public:
  Update(Context& context, UpdateRule rule, const std::vector<Segment>& segments);

  // Sum of the squares of all gradients, in double and in an order that depends on the segments
  // only.
  double squared_norm(Context& context, const Tensor& diff) const;
  // diff is read, data and history are changed. All are arenas (one axis) of one dtype, float or
  // double. half: a copy of data in 16 bits, or empty. live (on a GPU): its rate instead of the
  // step's, and its factor for the step's scale; counters and loss scale move on afterwards.
  void run(Context& context, const UpdateStep& step, const Tensor& data, const Tensor& diff,
           const std::vector<Tensor>& history, const Tensor& half = {},
           const LiveUpdate* live = nullptr) const;
  // On a GPU, before run() where limits ask for it: norm, factor and finite from the gradient.
  void measure(Context& context, const Tensor& diff, const LiveUpdate& live) const;

  // What Adam multiplies the rate with after `iteration` updates; 1 for other rules.
  static double rate_factor(UpdateRule rule, const UpdateStep& step);

 private:
  void sum_blocks(Context& context, const Tensor& diff, const LiveUpdate* live) const;

  UpdateRule rule_;
  int64_t blocks_ = 0;
  Tensor table_;
  Tensor partial_;  // a sum of squares for each block, on a GPU for each CUDA block
};

}  // namespace crema
