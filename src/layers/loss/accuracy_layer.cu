// Accuracy: the fraction of examples whose label is among the top_k highest scores, or with
// min_is_better (a fork) the lowest. Scores that equal the label's rank before it.
//   y = (number of hits) / (number of labels other than ignore_label), 0 if there are none
// Shapes: scores (N, C, H, W) with classes along `axis`, labels (N, H, W) or any shape with as many
// values, integers from 0 to C - 1 or ignore_label; y is a scalar, a second top (C) has the
// accuracy per class. Labels of the scores' shape are soft labels, as from augment's mixup and
// cutmix: the class with the largest value counts, the first of equal ones.
// Parameters: none.
// Gradient: none. EltwiseAccuracy (a fork's, older than Accuracy's support for label images) is the
// same.
#include "layers/layer.h"
#include "layers/loss/accuracy.h"
#include "layers/loss/label_shapes.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

template <typename T>
struct HitOfClass {
  ExampleHit<T> of;
  bool hits;  // else all examples
  template <typename C>
  CREMA_HD T operator()(int64_t k, int64_t, int64_t i) const {
    const bool is = static_cast<int64_t>(of.of.label(i)) == k;
    return is ? of.template operator()<C>(hits ? 0 : 1, 0, i) : T(0);
  }
};

template <typename T>
struct SharesOfClasses {
  const T *hits, *totals;
  T* y;
  CREMA_HD void operator()(int64_t k) const { y[k] = totals[k] > 0 ? hits[k] / totals[k] : T(0); }
};

// The class with the largest share of an example.
template <typename T>
struct LargestShare {
  const T* shares;
  int64_t classes, inner;
  T* label;
  CREMA_HD void operator()(int64_t i) const {
    const T* const share = shares + i / inner * classes * inner + i % inner;
    int64_t best = 0;
    for (int64_t k = 1; k < classes; ++k) {
      if (share[k * inner] > share[best * inner]) best = k;
    }
    label[i] = static_cast<T>(best);
  }
};

class AccuracyLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::metric, .labels = LabelKind::scored};

 private:
  const AccuracyParameter& p() const { return params<AccuracyParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  Arity tops() const override { return {1, 2}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& scores = bottoms[0];
    const int64_t classes = scores[scores.canonical_axis(p().axis())];
    require(p().top_k() >= 1 && p().top_k() <= classes, "top_k is ", p().top_k(),
            ", but there are ", classes, " scores for each example");
    require(bottoms[1].count() * classes == scores.count() || has_shares(scores, bottoms[1]),
            "there must be one label for each ", classes, " scores, but the scores are ",
            scores.brief(), " and the labels ", bottoms[1].brief(),
            " (`axis` says which axis has the classes)",
            advice_on_labels(scores, scores.canonical_axis(p().axis()), bottoms[1]));
    std::vector<Shape> tops = {Shape()};
    if (message().top_size() > 1) tops.push_back({classes});
    return {tops, {{{LabelNote::kCount}, DType::i32, true}, {{2}, {}}}};
  }
  LossParts loss_parts(const std::vector<Shape>&) const override {
    return LossParts::all(p().has_ignore_label() ? PartsRule::counted : PartsRule::mean);
  }
  Tensor loss_count(const std::vector<Tensor>& saved) const override { return saved[1]; }

  // With one class labels are classes, as in Caffe.
  bool has_shares(const Shape& scores, const Shape& labels) const {
    const int axis = scores.canonical_axis(p().axis());
    return scores[axis] > 1 && labels.axes() > axis && labels[axis] == scores[axis] &&
           labels.count(0, axis) == scores.count(0, axis) && labels.count() == scores.count();
  }

  // Workspace: what ReachingScores gives per example, then hits and totals per class, then the labels
  // if they have to be found.
  Prepared prepare(Context&, const Preparation& preparation) const override {
    const Shape& scores = preparation.bottoms[0];
    const int64_t classes = scores[scores.canonical_axis(p().axis())];
    Prepared prepared;
    const int64_t examples = scores.count() / classes;
    prepared.workspace =
        static_cast<size_t>(examples * (has_shares(scores, preparation.bottoms[1]) ? 2 : 1) +
                            2 * classes) *
        size_of(preparation.dtype);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &scores = pass.bottom[0], &labels = pass.bottom[1];
    const int axis = scores.shape().canonical_axis(p().axis());
    const int64_t classes = scores.shape()[axis], examples = scores.count() / classes;
    const bool shares = has_shares(scores.shape(), labels.shape());
    // Labels per image, if their number is the same for each.
    const int64_t images = scores.shape()[0],
                  each = images > 0 && examples % images == 0 ? examples / images : 1;
    const LabelNote note{pass.saved[0].data<int32_t>(), classes, each, pass.pass, pass.live_pass};
    if (!shares) {
      check_labels(labels, classes, each,
                   p().has_ignore_label() ? std::optional<int>(p().ignore_label()) : std::nullopt);
    }
    on(scores, [&]<typename T>() {
      T *reaching = pass.workspace.data<T>(), *hits = reaching + examples, *totals = hits + classes;
      const int64_t inner = scores.shape().count(axis + 1);
      T* const found = totals + classes;
      if (shares) {
        parallel_for(context, examples, LargestShare<T>{labels.data<T>(), classes, inner, found});
      }
      const ScoredExamples<T> of{scores.data<T>(),
                                 shares ? found : labels.data<T>(),
                                 classes,
                                 inner,
                                 static_cast<int64_t>(p().top_k()),
                                 p().has_ignore_label(),
                                 p().ignore_label(),
                                 p().min_is_better()};
      const ExampleHit<T> hit = find_hits(context, of, examples, reaching, note);
      parallel_totals<T, 2>(context, 1, examples, hit,
                            HitShare<T>{pass.top[0].data<T>(), pass.saved[1].data<T>()});
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
