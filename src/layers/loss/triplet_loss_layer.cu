// TripletLoss (forks): an anchor must be nearer to its positive than to its negative by a margin.
//   loss = 1 / (2N) * sum over n of max(0, margin + |a[n] - p[n]|^2 - |a[n] - q[n]|^2)
// Shapes: anchors a, positives p and negatives q, all (N, C) or (N, C, 1, 1); the loss is a scalar.
// A fourth bottom, which one fork has, is not read.
// Parameters: none.
// Gradient: da = (q - p) / N, dp = (p - a) / N, dq = (a - q) / N where the loss of n is positive,
// times the loss weight.
#include "kernels/core/distance.h"
#include "kernels/core/pointwise.h"
#include "kernels/core/reduce.h"
#include "layers/layer.h"
#include "proto/params/forks_face.pb.h"

namespace crema {
namespace {

template <typename T>
struct Violation {
  const T *positive, *negative;  // squared distances to each anchor
  T margin;
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t, int64_t n) const {
    const T violation = margin + positive[n] - negative[n];
    return violation > 0 ? violation : T(0);
  }
};

// dx = to - from where the triplet's loss is positive.
template <typename T>
struct TripletGradient {
  Violation<T> violation;
  const T *from, *to, *weight;
  int64_t channels;
  T share;
  T* dx;
  CREMA_HD void operator()(int64_t n, int64_t channel) const {
    const int64_t i = n * channels + channel;
    const T active = violation.template operator()<T>(0, 0, n) > 0 ? T(1) : T(0);
    dx[i] = active * share * *weight * (to[i] - from[i]);
  }
};

class TripletLossLayer : public Layer {
  Arity bottoms() const override { return {3, 4}; }
  bool is_loss() const override { return true; }
  bool differentiable(int bottom) const override { return bottom < 3; }
  BackwardReads reads() const override { return {true, false}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& a = bottoms[0];
    for (int i = 1; i < 3; ++i) {
      require(a.axes() > 0 && bottoms[i].axes() > 0 && a[0] == bottoms[i][0] &&
                  a.count() == bottoms[i].count(),
              "anchors, positives and negatives must be alike, but they are ", a.brief(), ", ",
              bottoms[1].brief(), " and ", bottoms[2].brief());
    }
    return {{Shape()}, {{{2, a[0]}, {}}}};  // saved: the squared distances
  }

  template <typename T>
  Violation<T> violation(const Tensor& squares) const {
    const T* positive = squares.data<T>();
    return {positive, positive + squares.shape()[1],
            static_cast<T>(params<TripletLossParameter>().margin())};
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor& a = pass.bottom[0];
    const int64_t anchors = a.shape()[0], channels = a.shape().count(1);
    on(a, [&]<typename T>() {
      for (int i = 1; i < 3; ++i) {
        const SquaredDistance<T> distance{a.data<T>(), pass.bottom[i].data<T>(), channels};
        parallel_sum<T>(context, {anchors, 1, channels}, distance,
                        {pass.saved[0].data<T>() + (i - 1) * anchors});
      }
      parallel_sum<T>(context, {1, 1, anchors}, violation<T>(pass.saved[0]),
                      {pass.top[0].data<T>(), T(0.5) / static_cast<T>(anchors)});
    });
  }

  void backward(Context& context, const Backward& pass) override {
    const int64_t anchors = pass.bottom[0].shape()[0], channels = pass.bottom[0].shape().count(1);
    // The gradient of bottom i is the difference of two bottoms.
    const int from[] = {1, 0, 2}, to[] = {2, 1, 0};
    for (int i = 0; i < 3; ++i) {
      if (!pass.bottom_diff[i]) continue;
      on(pass.bottom[0], [&]<typename T>() {
        const TripletGradient<T> gradient{violation<T>(pass.saved[0]),
                                          pass.bottom[from[i]].data<T>(),
                                          pass.bottom[to[i]].data<T>(),
                                          pass.top_diff[0].data<T>(),
                                          channels,
                                          T(1) / static_cast<T>(anchors),
                                          pass.bottom_diff[i].data<T>()};
        parallel_rows(context, anchors, channels, gradient);
      });
    }
  }
};

}  // namespace
REGISTER_LAYER(TripletLoss, TripletLossLayer);
}  // namespace crema
