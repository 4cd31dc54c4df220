// Top-k hits of examples, counted by Accuracy and its variants in MyCaffe. For .cu files only, like
// device/parallel.h.
#pragma once

#include <cmath>

#include "kernels/labels/labels.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"

namespace crema {

template <typename T>
struct ScoredExamples {
  const T *scores, *labels;
  int64_t classes, inner, top_k;
  bool ignoring;
  int ignored;
  bool min_wins = false;   // the smallest scores are the best
  int64_t label_step = 1;  // stride from an example's label to the next one's
  CREMA_HD T label(int64_t i) const { return labels[i * label_step]; }
  CREMA_HD bool counts(int64_t i) const { return !ignoring || label(i) != static_cast<T>(ignored); }
  CREMA_HD bool has_class(int64_t i) const { return is_class(label(i), classes); }
};

// Sum i: the number of example i's scores at least as good as its label's, including that one.
template <typename T>
struct ReachingScores {
  ScoredExamples<T> of;
  template <typename>
  CREMA_HD T operator()(int64_t i, int64_t row, int64_t column) const {
    if (!of.has_class(i)) return T(0);
    const T* score = of.scores + i / of.inner * of.classes * of.inner + i % of.inner;
    const T own = score[static_cast<int64_t>(of.label(i)) * of.inner],
            other = score[(row + column) * of.inner];
    return (of.min_wins ? other <= own : other >= own) ? T(1) : T(0);
  }
};

// For each example, or each of class k: whether it is a hit (NaN for a label out of range), and 1.
template <typename T>
struct ExampleHit {
  ScoredExamples<T> of;
  const T* reaching;
  LabelNote note;
  CREMA_HD T hit(int64_t i) const {
    if (!of.counts(i)) return T(0);
    if (!of.has_class(i)) note.write(i * of.label_step, of.label(i));
    const T right = reaching[i] <= static_cast<T>(of.top_k) ? T(1) : T(0);
    return of.has_class(i) ? right : T(NAN);
  }
  template <typename>
  CREMA_HD T operator()(int64_t sum, int64_t, int64_t i) const {
    return sum == 0 ? hit(i) : of.counts(i) ? T(1) : T(0);
  }
};

// count: as Layer::loss_count() says; or null.
template <typename T>
struct HitShare {
  T *y, *count = nullptr;
  CREMA_HD void operator()(int64_t, const double* sums) const {
    *y = sums[1] > 0 ? static_cast<T>(sums[0] / sums[1]) : T(0);
    if (!count) return;
    count[0] = static_cast<T>(sums[1] > 1 ? sums[1] : 1);
    count[1] = static_cast<T>(sums[1]);
  }
};

// Whether each example is a hit; `reaching` has room for one value per example.
template <typename T>
ExampleHit<T> find_hits(Context& context, const ScoredExamples<T>& of, int64_t examples,
                        T* reaching, const LabelNote& note) {
  const SumExtent extent =
      of.inner == 1 ? SumExtent{examples, 1, of.classes} : SumExtent{examples, of.classes, 1};
  parallel_sum<T>(context, extent, ReachingScores<T>{of}, {reaching});
  return {of, reaching, note};
}

}  // namespace crema
