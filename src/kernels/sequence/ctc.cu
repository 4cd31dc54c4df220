#include "kernels/sequence/ctc.h"

#include <cfloat>
#include <cmath>

#include "device/aligned.h"
#include "kernels/labels/equal_links.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/softmax/softmax.h"

namespace crema {
namespace {

template <typename T>
CREMA_HD T log_of_sum(T a, T b, T c) {
  const T maximum = a > b ? (a > c ? a : c) : (b > c ? b : c);
  if (maximum == -T(INFINITY)) return maximum;
  return maximum + std::log(std::exp(a - maximum) + std::exp(b - maximum) + std::exp(c - maximum));
}

// The states of a sequence and their scores.
template <typename T>
struct States {
  int64_t sequences, classes, labels, blank, count;
  const int32_t *label, *lengths;
  const T* probabilities;

  CREMA_HD int64_t steps(int64_t n) const { return lengths[n]; }
  CREMA_HD int64_t length(int64_t n) const { return lengths[sequences + n]; }
  CREMA_HD int32_t label_of(int64_t n, int64_t s) const { return label[n * labels + s / 2]; }
  CREMA_HD bool is_label(int64_t s) const { return s % 2 == 1; }
  CREMA_HD int64_t last(int64_t n) const { return 2 * length(n); }
  // True when a path may skip from state s - 2 to s: over an optional blank between different
  // labels.
  CREMA_HD bool may_skip_to(int64_t n, int64_t s) const {
    return is_label(s) && s >= 2 && label_of(n, s) != label_of(n, s - 2);
  }
  CREMA_HD T log_probability(int64_t t, int64_t n, int64_t s) const {
    const int64_t k = is_label(s) ? label_of(n, s) : blank;
    const T p = probabilities[(t * sequences + n) * classes + k];
    return std::log(p > T(FLT_MIN) ? p : T(FLT_MIN));
  }
  CREMA_HD int64_t at(int64_t n, int64_t s) const { return n * count + s; }
};

// alpha of step t: the log of the summed probability of all path prefixes that end in state s.
template <typename T>
struct ForwardStep {
  States<T> states;
  int64_t t;
  const T* before;
  T* now;
  CREMA_HD void operator()(int64_t n, int64_t s) const {
    if (t >= states.steps(n) || s > states.last(n)) return;
    T sum = s < 2 ? T(0) : -T(INFINITY);
    if (t > 0) {
      const T* from = before + states.at(n, s);
      const T none = -T(INFINITY);
      sum =
          log_of_sum(from[0], s > 0 ? from[-1] : none, states.may_skip_to(n, s) ? from[-2] : none);
    }
    now[states.at(n, s)] = sum + states.log_probability(t, n, s);
  }
};

template <typename T>
struct Cost {
  States<T> states;
  const T* alpha;
  T* costs;
  CREMA_HD void operator()(int64_t n) const {
    const int64_t last = states.last(n), steps = states.steps(n);
    costs[n] = last < 0 ? T(NAN) : T(0);
    if (last < 0 || steps == 0) return;
    const T* end = alpha + (steps - 1) * states.sequences * states.count + states.at(n, last);
    const T none = -T(INFINITY);
    const T sum = log_of_sum(end[0], last > 0 ? end[-1] : none, none);
    if (sum > none) costs[n] = -sum;
  }
};

// beta of step t: the log of the summed probability of all path suffixes from state s; and the
// posterior: of the probability of all paths that give the labels, the part that passes through s
// at t.
template <typename T>
struct BackwardStep {
  States<T> states;
  int64_t t;
  const T *after, *alpha, *costs;
  T *now, *posterior;
  CREMA_HD void operator()(int64_t n, int64_t s) const {
    const int64_t last = states.last(n), steps = states.steps(n), i = states.at(n, s);
    if (t >= steps || s > last) return;
    const T none = -T(INFINITY);
    T sum = s + 1 >= last ? T(0) : none;
    if (t + 1 < steps) {
      const auto through = [&](int64_t to) {
        return after[states.at(n, to)] + states.log_probability(t + 1, n, to);
      };
      const bool skips = s + 2 <= last && states.may_skip_to(n, s + 2);
      sum = log_of_sum(through(s), s < last ? through(s + 1) : none, skips ? through(s + 2) : none);
    }
    now[i] = sum;
    posterior[i] = std::exp(alpha[i] + sum + costs[n]);
  }
};

template <typename T>
struct HasGradient {
  States<T> states;
  const T* alpha;
  // True when some path gives the labels of sequence n; also for invalid labels, whose gradient is
  // NaN.
  CREMA_HD bool operator()(int64_t n) const {
    const int64_t last = states.last(n), steps = states.steps(n);
    if (last < 0 || steps == 0) return last < 0;
    const T* end = alpha + (steps - 1) * states.sequences * states.count + states.at(n, last);
    return end[0] > -T(INFINITY) || (last > 0 && end[-1] > -T(INFINITY));
  }
};

template <typename T>
struct SoftmaxTerm {
  HasGradient<T> has_gradient;
  const T* d_cost;
  T factor;
  T* d_scores;
  CREMA_HD void operator()(int64_t position, int64_t k) const {
    const States<T>& states = has_gradient.states;
    const int64_t n = position % states.sequences, i = position * states.classes + k;
    T value = 0;
    if (position / states.sequences < states.steps(n) && has_gradient(n))
      value = states.last(n) < 0 ? T(NAN) : factor * *d_cost * states.probabilities[i];
    d_scores[i] = value;
  }
};

// Subtracts posteriors: column 0 that of the blank, column 1 + j that of all labels equal to label
// j, if j is the first of them.
template <typename T>
struct SubtractPosteriors {
  HasGradient<T> has_gradient;
  const T *d_cost, *posterior;
  T factor;
  const int32_t *next, *first;
  T* d_scores;
  CREMA_HD void operator()(int64_t position, int64_t column) const {
    const States<T>& states = has_gradient.states;
    const int64_t n = position % states.sequences, j = column - 1;
    if (position / states.sequences >= states.steps(n) || column > states.length(n) ||
        !has_gradient(n))
      return;
    const T* of_state = posterior + position * states.count;
    const int64_t list = n * states.labels;
    T sum = 0;
    if (column == 0) {
      for (int64_t s = 0; s <= states.last(n); s += 2) sum += of_state[s];
    } else {
      if (!first[list + j]) return;
      for (int64_t i = j; i >= 0; i = next[list + i]) sum += of_state[2 * i + 1];
    }
    const int64_t k = column == 0 ? states.blank : states.label[list + j];
    d_scores[position * states.classes + k] -= factor * *d_cost * sum;
  }
};

template <typename T>
States<T> states_of(const CtcCase& c, const CtcTargets& targets, const Tensor& probabilities) {
  return {c.sequences,
          c.classes,
          c.labels,
          c.blank,
          c.states(),
          targets.labels.data<int32_t>(),
          targets.lengths.data<int32_t>(),
          probabilities.data<T>()};
}

// The workspace of backward: the posteriors of all steps, beta of two steps, and the links
// between equal labels.
struct Workspace {
  size_t beta, links, end;
  Workspace(const CtcCase& c, DType dtype) {
    const auto row = static_cast<size_t>(c.sequences * c.states()) * size_of(dtype);
    beta = aligned(static_cast<size_t>(c.steps) * row);
    links = beta + aligned(2 * row);
    end = links + 2 * static_cast<size_t>(c.sequences * c.labels) * sizeof(int32_t);
  }
};

}  // namespace

size_t ctc_workspace(const CtcCase& c, DType dtype) { return Workspace(c, dtype).end; }

void ctc_forward(Context& context, const CtcCase& c, const Tensor& scores,
                 const CtcTargets& targets, const CtcSaved& saved) {
  softmax_forward(context, {c.steps * c.sequences, c.classes, 1}, scores, saved.probabilities);
  on(scores, [&]<typename T>() {
    const States<T> states = states_of<T>(c, targets, saved.probabilities);
    T* alpha = saved.alpha.data<T>();
    const int64_t row = c.sequences * c.states();
    for (int64_t t = 0; t < c.steps; ++t) {
      T* now = alpha + t * row;
      parallel_rows(context, c.sequences, c.states(),
                    ForwardStep<T>{states, t, t > 0 ? now - row : now, now});
    }
    parallel_for(context, c.sequences, Cost<T>{states, alpha, saved.costs.data<T>()});
  });
}

void ctc_backward(Context& context, const CtcCase& c, const CtcTargets& targets,
                  const CtcSaved& saved, const Tensor& d_cost, double factor,
                  const Tensor& d_scores, const Tensor& workspace) {
  on(d_scores, [&]<typename T>() {
    const Workspace parts(c, d_scores.dtype());
    const States<T> states = states_of<T>(c, targets, saved.probabilities);
    const int64_t row = c.sequences * c.states();
    const T* alpha = saved.alpha.data<T>();
    T* posterior = workspace.data<T>();
    T* beta = reinterpret_cast<T*>(workspace.data<char>() + parts.beta);
    auto* next = reinterpret_cast<int32_t*>(workspace.data<char>() + parts.links);
    int32_t* first = next + c.sequences * c.labels;
    for (int64_t t = c.steps - 1; t >= 0; --t) {
      parallel_rows(
          context, c.sequences, c.states(),
          BackwardStep<T>{states, t, beta + (t + 1) % 2 * row, alpha + t * row,
                          saved.costs.data<T>(), beta + t % 2 * row, posterior + t * row});
    }
    link_equal<int32_t>(context, c.sequences, {states.label, c.labels, c.classes, next, first});
    const HasGradient<T> has_gradient{states, alpha};
    const T scale = static_cast<T>(factor);
    parallel_rows(context, c.steps * c.sequences, c.classes,
                  SoftmaxTerm<T>{has_gradient, d_cost.data<T>(), scale, d_scores.data<T>()});
    parallel_rows(context, c.steps * c.sequences, c.labels + 1,
                  SubtractPosteriors<T>{has_gradient, d_cost.data<T>(), posterior, scale, next,
                                        first, d_scores.data<T>()});
  });
}

}  // namespace crema
