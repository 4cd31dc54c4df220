// K1_EuclideanLoss and K2_EuclideanLoss (a fork): turn outputs between 0 and 1 into good binary
// codes.
//   K1: loss = -1 / (2 * M * N) * sum of (x - 0.5)^2   away from one half, in either direction
//   K2: loss = 1 / (2 * N) * (mean of x - 0.5)^2        as many ones as zeros
// Shapes: x (N, ...) with M values; a second bottom, which every loss of that fork has, is not
// read; the loss is a scalar.
// Parameters: none.
// Gradient: K1 dx = -(x - 0.5) / (M * N), K2 dx = (mean of x - 0.5) / (M * N), times the loss
// weight; none for the second bottom.
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "layers/layer.h"

namespace crema {
namespace {

template <typename T>
struct FromHalf {
  const T* x;
  bool squared;
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t, int64_t i) const {
    const T d = x[i] - T(0.5);
    return squared ? d * d : d;
  }
};

template <typename T>
struct SquareMean {
  const T* mean;
  T factor;
  T* loss;
  CREMA_HD void operator()(int64_t) const { *loss = factor * *mean * *mean; }
};

template <typename T>
struct CodeGradient {
  const T *x, *mean, *weight;  // mean: of x - 0.5; null for K1
  T share;
  T* dx;
  CREMA_HD void operator()(int64_t i) const {
    dx[i] = share * *weight * (mean ? *mean : T(0.5) - x[i]);
  }
};

class BinaryCodeLossLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::loss, .labels = LabelKind::classes};

  explicit BinaryCodeLossLayer(bool apart = false) : apart_(apart) {}

 private:
  Arity bottoms() const override { return {2, 2}; }
  bool is_loss() const override { return true; }
  LayerTraits traits() const override { return {.reads = {true, false, true}}; }
  bool differentiable(int bottom) const override { return bottom == 0; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    require(bottoms[0].axes() > 0, "the first bottom must have a batch axis, but is a scalar");
    return {{Shape()}, {{{1}, {}}}};  // saved: the mean of x - 0.5
  }

  LossParts loss_parts(const std::vector<Shape>&) const override {
    return LossParts::none(
        apart_
            ? "it divides by the square of the batch size, so that parts of a batch weigh more "
              "than the whole; train with -batch_mode per_gpu"
            : "it is the square of a mean over the batch, and each rank sees only its own part of "
              "that; train with -batch_mode per_gpu");
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& x = pass.bottom[0];
    const double images = static_cast<double>(x.shape()[0]),
                 values = static_cast<double>(x.count());
    on(x, [&]<typename T>() {
      T *loss = pass.top[0].data<T>(), *mean = pass.saved[0].data<T>();
      const double factor = apart_ ? -0.5 / (values * images) : 1 / values;
      parallel_sum<T>(context, {1, 1, x.count()}, FromHalf<T>{x.data<T>(), apart_},
                      {apart_ ? loss : mean, static_cast<T>(factor)});
      if (!apart_)
        parallel_for(context, 1, SquareMean<T>{mean, static_cast<T>(0.5 / images), loss});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    if (!pass.bottom_diff[0]) return;
    const Tensor& x = pass.bottom[0];
    const double share = 1 / (static_cast<double>(x.count()) * static_cast<double>(x.shape()[0]));
    on(x, [&]<typename T>() {
      parallel_for(context, x.count(),
                   CodeGradient<T>{x.data<T>(), apart_ ? nullptr : pass.saved[0].data<T>(),
                                   pass.top_diff[0].data<T>(), static_cast<T>(share),
                                   pass.bottom_diff[0].data<T>()});
    });
  }
  const bool apart_;  // K1_EuclideanLoss
};

}  // namespace
REGISTER_LAYER(K1_EuclideanLoss, BinaryCodeLossLayer, true);
REGISTER_LAYER(K2_EuclideanLoss, BinaryCodeLossLayer);
}  // namespace crema
