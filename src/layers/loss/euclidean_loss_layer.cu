// EuclideanLoss: half the mean squared distance of two blobs, for regression. WeightedEuclideanLoss
// (forks): the same with a weight for each value.
//   loss = 1 / (2N) * sum of w * (a - b)^2
// Shapes: a and b have the same batch N and number of values; w has as many, and is 1 without a
// third bottom; the loss is a scalar.
// Parameters: none.
// Gradient: da = w * (a - b) / N, db = -da, times the loss weight; none for w.
#include "device/parallel.h"
#include "kernels/core/reduce.h"
#include "layers/layer.h"
#include "tensor/on.h"

namespace crema {
namespace {

template <typename T>
struct WeightedDifference {
  const T *a, *b, *weights;  // weights: or null
  CREMA_HD T at(int64_t i) const { return (weights ? weights[i] : T(1)) * (a[i] - b[i]); }
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t, int64_t i) const {
    return at(i) * (a[i] - b[i]);
  }
};

template <typename T>
struct ScaledDifference {
  WeightedDifference<T> difference;
  const T* weight;  // of the loss
  T share;
  T *da, *db;  // null: not needed
  CREMA_HD void operator()(int64_t i) const {
    const T slope = *weight * share * difference.at(i);
    if (da) da[i] = slope;
    if (db) db[i] = -slope;
  }
};

class EuclideanLossLayer : public Layer {
 public:
  explicit EuclideanLossLayer(bool weighted = false) : weighted_(weighted) {}

 private:
  Arity bottoms() const override { return weighted_ ? Arity{3, 3} : Arity{2, 2}; }
  bool is_loss() const override { return true; }
  bool differentiable(int bottom) const override { return bottom < 2; }
  BackwardReads reads() const override { return {true, false}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &a = bottoms[0], &b = bottoms[1];
    require(a.axes() > 0 && b.axes() > 0 && a[0] == b[0] && a.count() == b.count(),
            "both bottoms must have the same batch and as many values, but they are ", a.brief(),
            " and ", b.brief());
    require(bottoms.size() < 3 || bottoms[2].count() == a.count(),
            "the third bottom must have a weight for each value of ", a.brief(), ", but is ",
            bottoms.back().brief());
    return {{Shape()}, {}};
  }

  template <typename T>
  static WeightedDifference<T> difference(const std::vector<Tensor>& bottom) {
    return {bottom[0].data<T>(), bottom[1].data<T>(),
            bottom.size() > 2 ? bottom[2].data<T>() : nullptr};
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor& a = pass.bottom[0];
    on(a, [&]<typename T>() {
      parallel_sum<T>(context, {1, 1, a.count()}, difference<T>(pass.bottom),
                      {pass.top[0].data<T>(), T(1) / (2 * static_cast<T>(a.shape()[0]))});
    });
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor& a = pass.bottom[0];
    on(a, [&]<typename T>() {
      parallel_for(
          context, a.count(),
          ScaledDifference<T>{difference<T>(pass.bottom), pass.top_diff[0].data<T>(),
                              T(1) / static_cast<T>(a.shape()[0]), pass.bottom_diff[0].data<T>(),
                              pass.bottom_diff[1].data<T>()});
    });
  }
  const bool weighted_;  // the third bottom has weights
};

}  // namespace
REGISTER_LAYER(EuclideanLoss, EuclideanLossLayer);
REGISTER_LAYER(WeightedEuclideanLoss, EuclideanLossLayer, true);
}  // namespace crema
