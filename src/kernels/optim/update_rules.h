// The update rules of kernels/optim/update.h, element by element. For .cu files only.
#pragma once

#include <cmath>

#include "base/host_device.h"
#include "kernels/optim/update_state.h"
#include "kernels/optim/update_table.h"

namespace crema {

// What all rules read and change. rate, penalty and shrink are those of the current chunk. Every
// pointer that rules write is also loaded and stored by update_four (update_walk_gpu.cuh).
template <typename T>
struct RuleOperands {
  const T* diff;
  T *w, *h, *k;
  T scale, limit;
  bool l1;
  T momentum2, delta, rms_decay;
  bool amsgrad;
  bool divides = true;
  bool belief = false;
  bool others = false;  // Muon: not its matrices
  T rate = 0, correction = 1, momentum = 0, penalty = 0, shrink = 0;
  T weight = 1;  // what the weights are multiplied with before the update

  CREMA_HD void set_hyperparameters(const Hyperparameters& at) {
    rate = at.rate;
    correction = at.correction;
    momentum = others ? at.others_momentum : at.momentum;
    penalty = at.penalty;
    shrink = at.shrink;
    divides = at.divides;
  }
  // Reads this iteration's hyperparameters from device memory.
  CREMA_HD void read_live(const LiveUpdate& live) {
    if (!live.state) return;
    set_hyperparameters(live.state->rates[live.state->updates % DeviceUpdateState::kRates]);
    scale *= live.state->gradient_scale;
  }
  // Without decay.
  CREMA_HD T pure_gradient(int64_t i) const {
    const T g = scale * diff[i];
    const T below = g > limit ? limit : g;  // comparisons preserve NaN
    return below < -limit ? -limit : below;
  }
  CREMA_HD T gradient(int64_t i) const {
    const T g = pure_gradient(i), weight = w[i];
    return g + penalty * (l1 ? static_cast<T>((weight > 0) - (weight < 0)) : weight);
  }
};

// a / b, and 0 where a is 0, whatever b is.
template <typename T>
CREMA_HD T zero_safe_quotient(T a, T b) {
  return a == 0 ? T(0) : a / b;
}

// kShrinks: decoupled decay is applied before the rule. A rule with kOnlyWeights leaves h and k
// unchanged.

template <typename T>
struct Sgd {
  static constexpr bool kShrinks = true;
  RuleOperands<T> in;
  CREMA_HD void operator()(int64_t i) const {
    in.h[i] = in.rate * in.gradient(i) + in.momentum * in.h[i];
    in.w[i] -= in.h[i];
  }
};

template <typename T>
struct Nesterov {
  static constexpr bool kShrinks = true;
  RuleOperands<T> in;
  CREMA_HD void operator()(int64_t i) const {
    const T old = in.h[i];
    const T now = in.rate * in.gradient(i) + in.momentum * old;
    in.h[i] = now;
    in.w[i] -= (1 + in.momentum) * now - in.momentum * old;
  }
};

template <typename T>
struct AdaGrad {
  static constexpr bool kShrinks = true;
  RuleOperands<T> in;
  CREMA_HD void operator()(int64_t i) const {
    const T g = in.gradient(i);
    in.h[i] += g * g;
    in.w[i] -= in.rate * zero_safe_quotient(g, std::sqrt(in.h[i]) + in.delta);
  }
};

template <typename T>
struct RmsProp {
  static constexpr bool kShrinks = true;
  RuleOperands<T> in;
  CREMA_HD void operator()(int64_t i) const {
    const T g = in.gradient(i);
    in.h[i] = in.rms_decay * in.h[i] + (1 - in.rms_decay) * g * g;
    in.w[i] -= in.rate * zero_safe_quotient(g, std::sqrt(in.h[i]) + in.delta);
  }
};

template <typename T>
struct AdaDelta {
  static constexpr bool kShrinks = true;
  RuleOperands<T> in;
  CREMA_HD void operator()(int64_t i) const {
    const T g = in.gradient(i), m = in.momentum;
    in.h[i] = m * in.h[i] + (1 - m) * g * g;
    const T u =
        zero_safe_quotient(g * std::sqrt(in.delta + in.k[i]), std::sqrt(in.delta + in.h[i]));
    in.k[i] = m * in.k[i] + (1 - m) * u * u;
    in.w[i] -= in.rate * u;
  }
};

// Adam's moments alone: the first pass of LAMB.
template <typename T>
struct Moments {
  static constexpr bool kShrinks = false;
  RuleOperands<T> in;
  CREMA_HD void operator()(int64_t i) const {
    const T g = in.gradient(i);
    in.h[i] = in.momentum * in.h[i] + (1 - in.momentum) * g;
    const T seen = in.belief ? g - in.h[i] : g;
    const T old = in.k[i], now = in.momentum2 * old + (1 - in.momentum2) * seen * seen +
                                 (in.belief ? in.delta : T(0));
    in.k[i] = in.amsgrad && now < old ? old : now;
  }
};

template <typename T>
struct Adam {
  static constexpr bool kShrinks = true;
  RuleOperands<T> in;
  CREMA_HD void operator()(int64_t i) const {
    Moments<T>{in}(i);
    const T step =
        in.divides ? zero_safe_quotient(in.h[i], std::sqrt(in.k[i]) + in.delta) : in.h[i];
    in.w[i] -= in.rate * in.correction * step;
  }
};

// The last pass of LAMB; rate has the ratio of the norms in it.
template <typename T>
struct Lamb {
  static constexpr bool kShrinks = false, kOnlyWeights = true;
  RuleOperands<T> in;
  CREMA_HD T step(int64_t i) const {
    return in.correction * zero_safe_quotient(in.h[i], std::sqrt(in.k[i]) + in.delta) +
           in.shrink * in.w[i];
  }
  CREMA_HD void operator()(int64_t i) const { in.w[i] -= in.rate * step(i); }
};

template <typename T>
struct Lion {
  static constexpr bool kShrinks = true;
  RuleOperands<T> in;
  CREMA_HD void operator()(int64_t i) const {
    const T g = in.gradient(i);
    const T u = in.momentum * in.h[i] + (1 - in.momentum) * g;
    in.w[i] -= in.rate * static_cast<T>((u > 0) - (u < 0));
    in.h[i] = in.momentum2 * in.h[i] + (1 - in.momentum2) * g;
  }
};

// The first and the last pass of Muon over matrices; between them k is orthogonalized.
template <typename T>
struct MuonMomentum {
  static constexpr bool kShrinks = false;
  RuleOperands<T> in;
  CREMA_HD void operator()(int64_t i) const {
    const T g = in.gradient(i);
    in.h[i] = in.momentum * in.h[i] + g;
    in.k[i] = g + in.momentum * in.h[i];
  }
};

template <typename T>
struct Muon {
  static constexpr bool kShrinks = true, kOnlyWeights = true;
  RuleOperands<T> in;
  CREMA_HD void operator()(int64_t i) const { in.w[i] = in.weight * in.w[i] - in.rate * in.k[i]; }
};

}  // namespace crema
