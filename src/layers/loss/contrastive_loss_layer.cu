// ContrastiveLoss: pulls the two vectors of a matching pair together and pushes those of other
// pairs apart, up to a margin.
//   loss = 1 / (2N) * sum over n of y * d^2 + (1 - y) * max(0, margin - d)^2    d = |a[n] - b[n]|
//   with legacy_version: max(0, margin - d^2) for other pairs
// Shapes: a and b (N, C) or (N, C, 1, 1), y (N), 0 or 1; the loss is a scalar.
// Parameters: none.
// Gradient: da = y * (a - b) / N; for other pairs within the margin da = -(margin - d) / (d + 1e-4)
// * (a - b) / N (legacy: -(a - b) / N); the 1e-4 is Caffe's. db = -da; times the loss weight; none
// for y.
#include "kernels/core/distance.h"
#include "kernels/core/pointwise.h"
#include "kernels/core/reduce.h"
#include "layers/layer.h"
#include "proto/params/loss.pb.h"

namespace crema {
namespace {

template <typename T>
struct PairLoss {
  const T *squares, *equal;  // d^2 and y of each pair
  T margin;
  bool legacy;

  // How far the pair is within the margin.
  CREMA_HD T gap(int64_t pair) const {
    const T gap = margin - (legacy ? squares[pair] : sqrt(squares[pair]));
    return gap > 0 ? gap : T(0);
  }
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t, int64_t pair) const {
    const T left = gap(pair);
    return static_cast<int>(equal[pair]) ? squares[pair] : legacy ? left : left * left;
  }
  // Derivative of half a pair's loss with respect to a - b, divided by a - b.
  CREMA_HD T slope(int64_t pair) const {
    const T left = gap(pair);
    const T push = legacy ? (left > 0 ? T(1) : T(0)) : left / (sqrt(squares[pair]) + T(1e-4));
    return static_cast<int>(equal[pair]) ? T(1) : -push;
  }
};

template <typename T>
struct PairGradient {
  PairLoss<T> loss;
  const T *a, *b, *weight;
  int64_t channels;
  T share;  // 1 / N for a, -1 / N for b
  T* dx;
  CREMA_HD void operator()(int64_t pair, int64_t channel) const {
    const int64_t i = pair * channels + channel;
    dx[i] = share * *weight * loss.slope(pair) * (a[i] - b[i]);
  }
};

class ContrastiveLossLayer : public Layer {
  Arity bottoms() const override { return {3, 3}; }
  bool is_loss() const override { return true; }
  bool differentiable(int bottom) const override { return bottom < 2; }
  BackwardReads reads() const override { return {true, false}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &a = bottoms[0], &b = bottoms[1];
    require(a.axes() > 0 && b.axes() > 0 && a[0] == b[0] && a.count() == b.count(),
            "the first two bottoms must have the same batch and as many values, but they are ",
            a.brief(), " and ", b.brief());
    require(a.axes() < 3 || a.count(2) == 1,
            "ContrastiveLoss compares vectors, (N, C) or (N, C, 1, 1), but the bottoms are ",
            a.brief(), "; a Flatten before them makes images vectors");
    require(bottoms[2].count() == a[0], "the third bottom must say of each of the ", a[0],
            " pairs whether it is equal, but it is ", bottoms[2].brief());
    return {{Shape()}, {{{a[0]}, {}}}};  // saved: the squared distances
  }

  template <typename T>
  PairLoss<T> loss(const Tensor& equal, const Tensor& squares) const {
    const ContrastiveLossParameter& p = params<ContrastiveLossParameter>();
    return {squares.data<T>(), equal.data<T>(), static_cast<T>(p.margin()), p.legacy_version()};
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor &a = pass.bottom[0], &squares = pass.saved[0];
    const int64_t pairs = a.shape()[0], channels = a.shape().count(1);
    on(a, [&]<typename T>() {
      const SquaredDistance<T> distance{a.data<T>(), pass.bottom[1].data<T>(), channels};
      parallel_sum<T>(context, {pairs, 1, channels}, distance, {squares.data<T>()});
      parallel_sum<T>(context, {1, 1, pairs}, loss<T>(pass.bottom[2], squares),
                      {pass.top[0].data<T>(), T(0.5) / static_cast<T>(pairs)});
    });
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor &a = pass.bottom[0], &b = pass.bottom[1];
    const int64_t pairs = a.shape()[0], channels = a.shape().count(1);
    for (int i = 0; i < 2; ++i) {
      if (!pass.bottom_diff[i]) continue;
      on(a, [&]<typename T>() {
        const T share = (i == 0 ? T(1) : T(-1)) / static_cast<T>(pairs);
        const PairGradient<T> gradient{loss<T>(pass.bottom[2], pass.saved[0]),
                                       a.data<T>(),
                                       b.data<T>(),
                                       pass.top_diff[0].data<T>(),
                                       channels,
                                       share,
                                       pass.bottom_diff[i].data<T>()};
        parallel_rows(context, pairs, channels, gradient);
      });
    }
  }
};

}  // namespace
REGISTER_LAYER(ContrastiveLoss, ContrastiveLossLayer);
}  // namespace crema
