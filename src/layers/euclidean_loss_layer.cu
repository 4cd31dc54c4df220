// EuclideanLoss: half the mean squared distance of two blobs, for regression.
//   loss = 1 / (2N) * sum of (a - b)^2
// Shapes: a and b have the same batch N and as many values; the loss is a scalar. Parameters: none.
// Gradient: da = (a - b) / N, db = -da, times the loss weight.
#include "kernels/pointwise.h"
#include "kernels/sum.h"
#include "layers/layer.h"

namespace crema {
namespace {

struct SquaredDifference {
  const void *a, *b;
  template <typename T>
  CREMA_HD T operator()(int64_t, int64_t, int64_t i) const {
    const T difference = static_cast<const T*>(a)[i] - static_cast<const T*>(b)[i];
    return difference * difference;
  }
};

struct ScaledDifference {
  const void* weight;  // of the loss, on the device
  float factor;
  template <typename T>
  CREMA_HD T operator()(T a, T b) const {
    return *static_cast<const T*>(weight) * factor * (a - b);
  }
};

class EuclideanLossLayer : public Layer {
  Arity bottoms() const override { return {2, 2}; }
  bool is_loss() const override { return true; }
  BackwardReads reads() const override { return {true, false}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &a = bottoms[0], &b = bottoms[1];
    require(a.axes() > 0 && b.axes() > 0 && a[0] == b[0] && a.count() == b.count(),
            "both bottoms must have the same batch and as many values, but they are ", a.brief(),
            " and ", b.brief());
    return {{Shape()}, {}};
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor &a = pass.bottom[0], &b = pass.bottom[1];
    on(a, [&]<typename T>() {
      parallel_sum<T>(context, {1, 1, a.count()}, SquaredDifference{a.raw(), b.raw()},
                      {pass.top[0].data<T>(), T(1) / (2 * static_cast<T>(a.shape()[0]))});
    });
  }

  void backward(Context& context, const Backward& pass) override {
    for (int i = 0; i < 2; ++i) {
      if (!pass.bottom_diff[i]) continue;
      const float share = 1 / static_cast<float>(pass.bottom[0].shape()[0]);
      pointwise(context, ScaledDifference{pass.top_diff[0].raw(), i == 0 ? share : -share},
                pass.bottom_diff[i], pass.bottom[0], pass.bottom[1]);
    }
  }
};

}  // namespace
REGISTER_LAYER(EuclideanLoss, EuclideanLossLayer);
}  // namespace crema
