// GeneralContrastiveLoss (a fork): pulls each example to the centre of its class and pushes it away
// from the others, up to a margin.
//   loss = 1 / N * sum over n of positive_weight * pull + negative_weight * sum of push over k != y
//   pull = min(positive_outlier_thresh, max(0, x[n,y] - positive_margin))
//   push = negative_margin - x[n,k] where that is positive, with exp_negative_weight exp(-x[n,k])
//   max_negative_only: k is the nearest other class only
//   positive_first: where x[n,y] > positive_upper_bound, no k counts
// Shapes: distances x (N, C) to the centres of C classes, labels y (N); the loss is a scalar, a
// second top has the mean of pull and that of max(0, negative_margin - x[n,k]) over all others.
// Parameters: none.
// Gradient: that of the loss, except for two rules of that fork: the own distance counts only below
// positive_outlier_thresh, but above positive_upper_bound always (with positive_first). With
// normalize_negative r, the others' gradients are divided by s = |sum of their slopes| / (r * N)
// where s > positive_weight. None for labels, none from the second top.
#include "layers/forks/loss/class_distances.h"
#include "proto/params/forks_face.pb.h"

namespace crema {
namespace {

template <typename T>
struct Contrast {
  ClassDistances<T> distances;
  const T* nearest;  // null: all others count
  T positive_margin, negative_margin, positive_weight, negative_weight;
  T outlier, bound;  // bound: larger own distances disable the others
  bool exponential;

  CREMA_HD T pull(int64_t n) const {
    const T d = distances.own(n) - positive_margin;
    return d < 0 ? T(0) : d > outlier ? outlier : d;
  }
  CREMA_HD bool pushes(int64_t n, int64_t k) const {
    return distances.at(n, k) < negative_margin && !(distances.own(n) > bound) &&
           (!nearest || nearest[n] == static_cast<T>(k));
  }
  CREMA_HD T loss(int64_t n, int64_t k) const {
    if (distances.is_own(n, k)) return positive_weight * pull(n);
    if (distances.own(n) != distances.own(n)) return T(NAN);
    const T d = distances.at(n, k);
    return pushes(n, k) ? negative_weight * (exponential ? exp(-d) : negative_margin - d) : T(0);
  }
  CREMA_HD T own_slope(int64_t n) const {
    const T d = distances.own(n);
    return d > bound || (d > positive_margin && d < outlier) ? positive_weight : T(0);
  }
  CREMA_HD T other_slope(int64_t n, int64_t k) const {
    const T push = exponential ? exp(-distances.at(n, k)) : T(1);
    return pushes(n, k) ? -negative_weight * push : T(0);
  }
};

template <typename T>
struct ContrastSum {
  Contrast<T> of;
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t n, int64_t k) const {
    return of.loss(n, k);
  }
};

template <typename T>
struct SlopeSum {
  Contrast<T> of;
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t n, int64_t k) const {
    return of.distances.is_own(n, k) ? T(0) : of.other_slope(n, k);
  }
};

// Sum 0: pulls; sum 1: the mean of the others' gaps.
template <typename T>
struct MeanGaps {
  Contrast<T> of;
  template <typename>
  CREMA_HD T operator()(int64_t sum, int64_t n, int64_t k) const {
    const bool own = of.distances.is_own(n, k);
    if (sum == 0) return own ? of.pull(n) : T(0);
    const T gap = of.negative_margin - of.distances.at(n, k);
    return own || gap < 0 ? T(0) : gap / static_cast<T>(of.distances.labels.classes - 1);
  }
};

template <typename T>
struct ContrastGradient {
  Contrast<T> of;
  const T *slopes, *weight;  // slopes: the mean of the sums of the others' slopes; null: not
                             // normalized
  T norm, share;
  T* dx;
  CREMA_HD void operator()(int64_t n, int64_t k) const {
    T slope = of.distances.is_own(n, k) ? of.own_slope(n) : of.other_slope(n, k);
    if (slopes && !of.distances.is_own(n, k)) {
      const T divisor = (*slopes < 0 ? -*slopes : *slopes) / norm;
      slope = divisor > of.positive_weight ? slope / divisor : slope;
    }
    dx[n * of.distances.labels.classes + k] = slope * share * *weight;
  }
};

class GeneralContrastiveLossLayer : public LabelledLossLayer {
  const GeneralContrastiveParameter& p() const { return params<GeneralContrastiveParameter>(); }
  Arity tops() const override { return {1, 2}; }

  void setup(Context&, const std::vector<Shape>&) override {
    const char* const unknown = p().square()              ? "square"
                                : p().max_positive_only() ? "max_positive_only"
                                : p().add_intra_mae()     ? "add_intra_mae"
                                                          : nullptr;
    require(!unknown, "general_contrastive_loss_param has ", unknown ? unknown : "",
            ": true, which is not supported; leave it out");
    require(!p().has_normalize_negative() || p().normalize_negative() > 0, "normalize_negative is ",
            p().normalize_negative(), ", but must be positive");
  }

  Inference shapes(const std::vector<Shape>& bottoms) const override {
    require_class_distances(bottoms);
    const Shape& x = bottoms[0];
    require(x.count(1) > 1, "there must be two classes or more, but the distances are ", x.brief());
    // saved: the nearest other class of each example, the mean of the sums of the others' slopes
    return {tops_with({2}), {{{x[0]}, {}}, {{1}, {}}}};
  }

  LossParts loss_parts(const std::vector<Shape>&) const override {
    if (!p().has_normalize_negative()) return LossParts::all(PartsRule::mean);
    return LossParts::none(
        "normalize_negative divides by the sum of all slopes of the batch, and each rank sees only "
        "its own part of them; leave it out");
  }

  template <typename T>
  Contrast<T> contrast(const LossInput& in) const {
    return {{in.at<T>(0), labels<T>(in)},
            p().max_negative_only() ? in.saved[0].data<T>() : nullptr,
            static_cast<T>(p().positive_margin()),
            static_cast<T>(p().negative_margin()),
            static_cast<T>(p().positive_weight()),
            static_cast<T>(p().negative_weight()),
            static_cast<T>(p().positive_outlier_thresh()),
            p().positive_first() ? static_cast<T>(p().positive_upper_bound()) : T(INFINITY),
            p().exp_negative_weight()};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Shape& shape = pass.bottom[0].shape();
    const int64_t batch = shape[0], classes = shape.count(1);
    check_values(pass);
    on(pass.bottom[0], [&]<typename T>() {
      const Contrast<T> each = contrast<T>(loss_input(pass));
      const T share = T(1) / static_cast<T>(batch);
      if (each.nearest)
        parallel_for(context, batch, NearestOthers<T>{each.distances, pass.saved[0].data<T>()});
      parallel_sum<T>(context, {1, batch, classes}, ContrastSum<T>{each},
                      {pass.top[0].data<T>(), share});
      if (p().has_normalize_negative())
        parallel_sum<T>(context, {1, batch, classes}, SlopeSum<T>{each},
                        {pass.saved[1].data<T>(), share});
      if (pass.top.size() > 1)
        parallel_sum<T>(context, {2, batch, classes}, MeanGaps<T>{each},
                        {pass.top[1].data<T>(), share});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    if (!pass.bottom_diff[0]) return;
    const Shape& shape = pass.bottom[0].shape();
    on(pass.bottom[0], [&]<typename T>() {
      const T* slopes = p().has_normalize_negative() ? pass.saved[1].data<T>() : nullptr;
      parallel_rows(
          context, shape[0], shape.count(1),
          ContrastGradient<T>{contrast<T>(loss_input(pass)), slopes, pass.top_diff[0].data<T>(),
                              static_cast<T>(p().normalize_negative()),
                              T(1) / static_cast<T>(shape[0]), pass.bottom_diff[0].data<T>()});
    });
  }
};

}  // namespace
REGISTER_LAYER(GeneralContrastiveLoss, GeneralContrastiveLossLayer);
}  // namespace crema
