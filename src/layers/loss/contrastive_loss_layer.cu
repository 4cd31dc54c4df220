// ContrastiveLoss: pulls the two vectors of a matching pair together and pushes those of other
// pairs apart, up to a margin.
//   loss = 1 / (2N) * sum over n of y * d^2 + (1 - y) * max(0, margin - d)^2    d = |a[n] - b[n]|
//   with legacy_version: max(0, margin - d^2) for other pairs
// Shapes: a and b (N, C) or (N, C, 1, 1), y (N), 0 or 1, others are an error; the loss is a scalar.
// Parameters: none.
// Gradient: da = y * (a - b) / N; for other pairs within the margin da = -(margin - d) / (d + 1e-4)
// * (a - b) / N (legacy: -(a - b) / N); the 1e-4 is Caffe's. db = -da; times the loss weight; none
// for y.
#include "kernels/reduce/reduce_values.h"
#include "layers/loss/ranged_loss.h"

namespace crema {
namespace {

template <typename T>
struct PairTerms {
  const T *a, *b, *squares;  // squares: d^2 of each pair
  RangedTargets<T> equal;    // y
  int64_t channels;
  T side;  // gradient: 1 for a, -1 for b
  T margin;
  bool legacy;

  // The distance by which the pair is within the margin.
  CREMA_HD T gap(int64_t pair) const {
    const T gap = margin - (legacy ? squares[pair] : sqrt(squares[pair]));
    return gap > 0 ? gap : T(0);
  }
  CREMA_HD T loss(int64_t, int64_t pair) const {
    equal.note(pair);
    const T left = gap(pair);
    return static_cast<int>(equal.at(pair)) ? squares[pair] : legacy ? left : left * left;
  }
  // Derivative of half a pair's loss with respect to a - b, divided by a - b.
  CREMA_HD T slope(int64_t pair) const {
    const T left = gap(pair);
    const T push = legacy ? (left > 0 ? T(1) : T(0)) : left / (sqrt(squares[pair]) + T(1e-4));
    return static_cast<int>(equal.at(pair)) ? T(1) : -push;
  }
  CREMA_HD T gradient(int64_t pair, int64_t channel, const LossScale<T>& scale) const {
    const int64_t i = pair * channels + channel;
    return side * scale.value() * slope(pair) * (a[i] - b[i]);
  }
};

class ContrastiveLossLayer : public RangedLoss<ContrastiveLossLayer> {
 public:
  Arity bottoms() const override { return {3, 3}; }
  bool differentiable(int bottom) const override { return bottom < 2; }

  size_t targets() const override { return 2; }
  TargetRange range() const override {
    return {.whole = true, .advice = "1 is a pair that belongs together and 0 one that does not"};
  }
  Inference shapes(const std::vector<Shape>& bottoms) const override {
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

  SumExtent extent(const Shape& a) const { return {1, 1, a[0]}; }
  SumExtent gradient_extent(const Shape& a) const { return {1, a[0], a.count(1)}; }
  double factor() const { return 0.5; }
  template <typename T>
  PairTerms<T> terms(const LossInput& in) const {
    const ContrastiveLossParameter& p = params<ContrastiveLossParameter>();
    const int64_t channels = in.bottom[0].shape().count(1);
    const T* squares = in.saved[0].data<T>();
    const T side = in.of == 0 ? T(1) : T(-1);
    const auto margin = static_cast<T>(p.margin());
    return {in.at<T>(0), in.at<T>(1), squares, ranged<T>(in),
            channels,    side,        margin,  p.legacy_version()};
  }

  void forward(Context& context, const Forward& pass) const override {
    on(pass.bottom[0], [&]<typename T>() {
      const PairTerms<T> pair = terms<T>(loss_input(pass));
      parallel_sum<T>(context, {pass.saved[0].count(), 1, pair.channels},
                      SquaredDistance<T>{pair.a, pair.b, pair.channels}, {pass.saved[0].data<T>()});
    });
    TermLoss::forward(context, pass);
  }
};

}  // namespace
REGISTER_LAYER(ContrastiveLoss, ContrastiveLossLayer);
}  // namespace crema
