// GeneralTripletLoss (a fork): the own class must be nearer than each other class by a margin.
//   loss = negative_weight / N * sum over n and k != y[n] of max(0, x[n,y] + margin - x[n,k])
//   hardest_only: k is the nearest other class only
//   positive_first: where x[n,y] > positive_upper_bound, no k counts
// Shapes: distances x (N, C) to the centres of C classes, labels y (N); a third bottom has a
// gradient factor for each n; the loss is a scalar, a second top has the mean distance to the own
// class and to the others.
// Parameters: none.
// Gradient, not that of the loss but the fork's: dx[n,k] = -negative_weight / N where k counts;
// dx[n,y] = positive_weight / N, once, where any k counts, with add_center_loss everywhere, and
// where positive_first disables the others; times the loss weight. None for labels and factors,
// none from the second top.
#include "layers/forks/loss/class_distances.h"
#include "proto/params/forks_face.pb.h"

namespace crema {
namespace {

template <typename T>
struct Violation {
  ClassDistances<T> distances;
  const T* nearest;  // null: all others count
  T margin, bound;   // bound: larger own distances disable the others
  CREMA_HD T operator()(int64_t n, int64_t k) const {
    const T own = distances.own(n), violation = own + margin - distances.at(n, k);
    const bool counts =
        !distances.is_own(n, k) && !(own > bound) && (!nearest || nearest[n] == static_cast<T>(k));
    return !counts || violation <= 0 ? T(0) : violation;
  }
};

template <typename T>
struct ViolationSum {
  Violation<T> violation;
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t n, int64_t k) const {
    return violation(n, k);
  }
};

template <typename T>
struct ViolationCount {
  Violation<T> violation;
  template <typename>
  CREMA_HD T operator()(int64_t n, int64_t, int64_t k) const {
    return violation(n, k) > 0 ? T(1) : T(0);
  }
};

// Sum 0: own distances; sum 1: the mean of the others'.
template <typename T>
struct MeanDistances {
  ClassDistances<T> distances;
  template <typename>
  CREMA_HD T operator()(int64_t sum, int64_t n, int64_t k) const {
    const T share = sum == 0 ? T(1) : T(1) / static_cast<T>(distances.labels.classes - 1);
    return distances.is_own(n, k) == (sum == 0) ? share * distances.at(n, k) : T(0);
  }
};

template <typename T>
struct DistanceGradient {
  Violation<T> violation;
  const T *counts, *factors, *weight;  // factors: may be null
  bool always;                         // the own distance counts everywhere
  T positive, negative;
  T* dx;
  CREMA_HD void operator()(int64_t n, int64_t k) const {
    const T own = violation.distances.own(n);
    const bool pulls = always || counts[n] > 0 || own > violation.bound;
    const T slope = violation.distances.is_own(n, k) ? (pulls ? positive : T(0))
                    : violation(n, k) > 0            ? -negative
                                                     : T(0);
    dx[n * violation.distances.labels.classes + k] =
        slope * *weight * (factors ? factors[n] : T(1));
  }
};

class GeneralTripletLossLayer : public LabelledLossLayer {
  const GeneralTripletParameter& p() const { return params<GeneralTripletParameter>(); }
  Arity bottoms() const override { return {2, 3}; }
  Arity tops() const override { return {1, 2}; }

  Inference shapes(const std::vector<Shape>& bottoms) const override {
    require_class_distances(bottoms);
    const Shape& x = bottoms[0];
    require(x.count(1) > 1, "there must be two classes or more, but the distances are ", x.brief());
    require(bottoms.size() < 3 || bottoms[2].count() == x[0],
            "the third bottom must have a factor for each of ", x[0], " examples, but is ",
            bottoms.back().brief());
    // saved: per example, how many others count and which one is nearest
    return {tops_with({2}), {{{2, x[0]}, {}}}};
  }

  LossParts loss_parts(const std::vector<Shape>&) const override {
    return LossParts::all(PartsRule::mean);
  }

  template <typename T>
  Violation<T> violation(const LossInput& in) const {
    return {{in.at<T>(0), labels<T>(in)},
            p().hardest_only() ? in.saved[0].data<T>() + in.bottom[0].shape()[0] : nullptr,
            static_cast<T>(p().margin()),
            p().positive_first() ? static_cast<T>(p().positive_upper_bound()) : T(INFINITY)};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Shape& shape = pass.bottom[0].shape();
    const int64_t batch = shape[0], classes = shape.count(1);
    check_values(pass);
    on(pass.bottom[0], [&]<typename T>() {
      const Violation<T> each = violation<T>(loss_input(pass));
      T* counts = pass.saved[0].data<T>();
      const T share = T(1) / static_cast<T>(batch);
      if (p().hardest_only())
        parallel_for(context, batch, NearestOthers<T>{each.distances, counts + batch});
      parallel_sum<T>(context, {1, batch, classes}, ViolationSum<T>{each},
                      {pass.top[0].data<T>(), static_cast<T>(p().negative_weight()) * share});
      parallel_sum<T>(context, {batch, 1, classes}, ViolationCount<T>{each}, {counts});
      if (pass.top.size() > 1)
        parallel_sum<T>(context, {2, batch, classes}, MeanDistances<T>{each.distances},
                        {pass.top[1].data<T>(), share});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    if (!pass.bottom_diff[0]) return;
    const Shape& shape = pass.bottom[0].shape();
    on(pass.bottom[0], [&]<typename T>() {
      const T share = T(1) / static_cast<T>(shape[0]);
      const DistanceGradient<T> gradient{violation<T>(loss_input(pass)),
                                         pass.saved[0].data<T>(),
                                         loss_input(pass).at<T>(2),
                                         pass.top_diff[0].data<T>(),
                                         p().add_center_loss(),
                                         static_cast<T>(p().positive_weight()) * share,
                                         static_cast<T>(p().negative_weight()) * share,
                                         pass.bottom_diff[0].data<T>()};
      parallel_rows(context, shape[0], shape.count(1), gradient);
    });
  }
};

}  // namespace
REGISTER_LAYER(GeneralTripletLoss, GeneralTripletLossLayer);
}  // namespace crema
