// Accuracy: the share of examples whose label is among the top_k highest scores. Scores that equal
// the label's rank before it.
//   y = (number of hits) / (number of labels other than ignore_label), 0 when there are none
// Shapes: scores (N, C, H, W) with classes along `axis`, labels (N, H, W) or any shape with as many
// values; y is a scalar, a second top (C) holds the share for each class.
// Parameters: none. Gradient: none.
// EltwiseAccuracy (a fork's, from before Accuracy took images of labels) is the same.
#include "kernels/labels.h"
#include "kernels/pointwise.h"
#include "kernels/sum.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

template <typename T>
struct Examples {
  const T *scores, *labels;
  int64_t classes, inner, top_k;
  bool ignoring;
  int ignored;
  CREMA_HD bool counts(int64_t i) const {
    return !ignoring || static_cast<int>(labels[i]) != ignored;
  }
  CREMA_HD bool is_class(int64_t i) const { return labels[i] >= 0 && labels[i] < classes; }
};

// Sum i: the scores of example i that are at least its label's, that one included.
template <typename T>
struct Reaching {
  Examples<T> of;
  template <typename>
  CREMA_HD T operator()(int64_t i, int64_t row, int64_t column) const {
    if (!of.is_class(i)) return T(0);
    const T* score = of.scores + i / of.inner * of.classes * of.inner + i % of.inner;
    const T own = score[static_cast<int64_t>(of.labels[i]) * of.inner];
    return score[(row + column) * of.inner] >= own ? T(1) : T(0);
  }
};

// Of each example, or each of class k: whether it is right (NaN for a label out of range), and 1.
template <typename T>
struct Hit {
  Examples<T> of;
  const T* reaching;
  LabelNote note;
  CREMA_HD T hit(int64_t i) const {
    if (!of.counts(i)) return T(0);
    if (!of.is_class(i)) note.write(i, of.labels[i]);
    const T right = reaching[i] <= static_cast<T>(of.top_k) ? T(1) : T(0);
    return of.is_class(i) ? right : T(NAN);
  }
  template <typename>
  CREMA_HD T operator()(int64_t sum, int64_t, int64_t i) const {
    return sum == 0 ? hit(i) : of.counts(i) ? T(1) : T(0);
  }
};

template <typename T>
struct HitOfClass {
  Hit<T> of;
  bool hits;  // else all
  template <typename C>
  CREMA_HD T operator()(int64_t k, int64_t, int64_t i) const {
    const bool is = static_cast<int64_t>(of.of.labels[i]) == k;
    return is ? of.template operator()<C>(hits ? 0 : 1, 0, i) : T(0);
  }
};

template <typename T>
struct Share {
  T* y;
  CREMA_HD void operator()(int64_t, const double* sums) const {
    *y = sums[1] > 0 ? static_cast<T>(sums[0] / sums[1]) : T(0);
  }
};

template <typename T>
struct SharesOfClasses {
  const T *hits, *totals;
  T* y;
  CREMA_HD void operator()(int64_t k) const { y[k] = totals[k] > 0 ? hits[k] / totals[k] : T(0); }
};

class AccuracyLayer : public Layer {
  const AccuracyParameter& p() const { return params<AccuracyParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  Arity tops() const override { return {1, 2}; }
  bool differentiable(int) const override { return false; }
  BackwardReads reads() const override { return {false, false}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& scores = bottoms[0];
    const int64_t classes = scores[scores.canonical_axis(p().axis())];
    require(p().top_k() >= 1 && p().top_k() <= classes, "top_k is ", p().top_k(),
            ", but there are ", classes, " scores for each example");
    require(bottoms[1].count() * classes == scores.count(), "there must be one label for each ",
            classes, " scores, but the scores are ", scores.brief(), " and the labels ",
            bottoms[1].brief(), " (`axis` says where the classes lie)");
    std::vector<Shape> tops = {Shape()};
    if (message().top_size() > 1) tops.push_back({classes});
    return {tops, {{{LabelNote::kCount}, DType::i32, true}}};
  }

  // Workspace: of every example what Reaching gives, then hits and totals of every class.
  Prepared prepare(Context&, const Preparation& preparation) override {
    const Shape& scores = preparation.bottoms[0];
    const int64_t classes = scores[scores.canonical_axis(p().axis())];
    Prepared prepared;
    prepared.workspace = static_cast<size_t>(preparation.bottoms[1].count() + 2 * classes) *
                         size_of(preparation.dtype);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor &scores = pass.bottom[0], &labels = pass.bottom[1];
    const int axis = scores.shape().canonical_axis(p().axis());
    const int64_t classes = scores.shape()[axis], examples = labels.count();
    // Labels of one image, where there are as many for each.
    const int64_t images = scores.shape()[0],
                  each = images > 0 && examples % images == 0 ? examples / images : 1;
    const LabelNote note{pass.saved[0].data<int32_t>(), classes, each, pass.pass, pass.live_pass};
    check_labels(labels, classes, each,
                 p().has_ignore_label() ? std::optional<int>(p().ignore_label()) : std::nullopt);
    on(scores, [&]<typename T>() {
      T *reaching = pass.workspace.data<T>(), *hits = reaching + examples, *totals = hits + classes;
      const Examples<T> of{scores.data<T>(),
                           labels.data<T>(),
                           classes,
                           scores.shape().count(axis + 1),
                           static_cast<int64_t>(p().top_k()),
                           p().has_ignore_label(),
                           p().ignore_label()};
      const SumExtent each_example =
          of.inner == 1 ? SumExtent{examples, 1, classes} : SumExtent{examples, classes, 1};
      parallel_sum<T>(context, each_example, Reaching<T>{of}, {reaching});
      const Hit<T> hit{of, reaching, note};
      parallel_totals<T, 2>(context, 1, examples, hit, Share<T>{pass.top[0].data<T>()});
      if (pass.top.size() == 1) return;
      const SumExtent each_class{classes, 1, examples};
      parallel_sum<T>(context, each_class, HitOfClass<T>{hit, true}, {hits});
      parallel_sum<T>(context, each_class, HitOfClass<T>{hit, false}, {totals});
      parallel_for(context, classes, SharesOfClasses<T>{hits, totals, pass.top[1].data<T>()});
    });
  }

  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved[0]);
  }
};

}  // namespace
REGISTER_LAYER(Accuracy, AccuracyLayer);
REGISTER_LAYER(EltwiseAccuracy, AccuracyLayer);
}  // namespace crema
