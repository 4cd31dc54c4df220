// TripletLoss (forks): an anchor must be closer to its positive than to its negative by a margin.
//   loss = 1 / (2N) * sum over n of max(0, margin + |a[n] - p[n]|^2 - |a[n] - q[n]|^2)
// Shapes: anchors a, positives p and negatives q, all (N, C) or (N, C, 1, 1); the loss is a scalar.
// One fork has a fourth bottom, which is not read.
// Parameters: none.
// Gradient: da = (q - p) / N, dp = (p - a) / N, dq = (a - q) / N where the loss of n is positive,
// times the loss weight.
#include "kernels/reduce/reduce_values.h"
#include "layers/loss/loss_layer.h"
#include "proto/params/forks_face.pb.h"

namespace crema {
namespace {

template <typename T>
struct Triplet {
  const T *positive, *negative;  // squared distances to each anchor
  T margin;
  const T *from, *to;  // dx = to - from where the triplet's loss is positive
  int64_t channels;

  CREMA_HD T loss(int64_t, int64_t n) const {
    const T violation = margin + positive[n] - negative[n];
    return violation > 0 ? violation : T(0);
  }
  CREMA_HD T gradient(int64_t n, int64_t channel, const LossScale<T>& scale) const {
    const int64_t i = n * channels + channel;
    const T active = loss(0, n) > 0 ? T(1) : T(0);
    return active * scale.share * scale.weight * (to[i] - from[i]);
  }
};

class TripletLossLayer : public TermLoss<TripletLossLayer> {
 public:
  Arity bottoms() const override { return {3, 4}; }
  bool differentiable(int bottom) const override { return bottom < 3; }

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

  SumExtent extent(const Shape& a) const { return {1, 1, a[0]}; }
  SumExtent gradient_extent(const Shape& a) const { return {1, a[0], a.count(1)}; }
  double factor() const { return 0.5; }
  template <typename T>
  Triplet<T> terms(const LossInput& in) const {
    const T* positive = in.saved[0].data<T>();
    const Shape& a = in.bottom[0].shape();
    // The gradient of each bottom is the difference of two bottoms.
    const size_t from[] = {1, 0, 2}, to[] = {2, 1, 0};
    return {positive,
            positive + a[0],
            static_cast<T>(params<TripletLossParameter>().margin()),
            in.at<T>(from[in.of]),
            in.at<T>(to[in.of]),
            a.count(1)};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& a = pass.bottom[0];
    const int64_t anchors = a.shape()[0], channels = a.shape().count(1);
    on(a, [&]<typename T>() {
      for (int i = 1; i < 3; ++i) {
        const SquaredDistance<T> distance{a.data<T>(), pass.bottom[i].data<T>(), channels};
        parallel_sum<T>(context, {anchors, 1, channels}, distance,
                        {pass.saved[0].data<T>() + (i - 1) * anchors});
      }
    });
    TermLoss::forward(context, pass);
  }
};

}  // namespace
REGISTER_LAYER(TripletLoss, TripletLossLayer);
}  // namespace crema
