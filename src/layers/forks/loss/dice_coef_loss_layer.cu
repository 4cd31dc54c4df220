// DiceCoefLoss (forks): one minus the overlap of predicted and true masks, the mean over images.
//   loss = 1 / N * sum over n of
//          1 - (2 * sum of x * t + smooth) / (sum of x^2 + sum of t^2 + smooth)
// Shapes: x (N, C, ...), t with as many values, 0 to 1 (others are an error); or labels, one per
// position, whose t is 1 in the label's channel and otherwise 0. The channel of
// dice_coef_loss_param.ignore_label does not count. The loss is a scalar.
// Parameters: none.
// Gradient: dx = 2 / N * (x * u - t * v) / v^2 with u the numerator and v the denominator, times
// the loss weight; none for t.
#include "kernels/labels/targets.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "layers/layer.h"
#include "proto/params/loss.pb.h"

namespace crema {
namespace {

template <typename T>
struct Masks {
  const T *x, *t;
  int64_t channels, inner;
  bool by_label;
  int64_t ignored;  // channel, or -1
  TargetBounds<T> bounds;
  LabelNote note;

  CREMA_HD T target(int64_t n, int64_t channel, int64_t column) const {
    if (!by_label) return t[(n * channels + channel) * inner + column];
    const T label = t[n * inner + column];
    return !is_class(label, channels)               ? T(NAN)
           : static_cast<int64_t>(label) == channel ? T(1)
                                                    : T(0);
  }
  // Sum 2n is half the numerator of image n, sum 2n + 1 the denominator.
  template <typename>
  CREMA_HD T operator()(int64_t k, int64_t channel, int64_t column) const {
    const int64_t n = k / 2;
    const T value = x[(n * channels + channel) * inner + column];
    const T truth = target(n, channel, column);
    if (by_label && truth != truth) note.write(n * inner + column, t[n * inner + column]);
    if (!by_label && !bounds.has(truth)) {
      note.write((n * channels + channel) * inner + column, truth);
    }
    return channel == ignored ? T(0) * truth
           : k % 2 == 0       ? value * truth
                              : value * value + truth * truth;
  }
};

template <typename T>
struct Overlap {
  const T* sums;
  T smooth;
  CREMA_HD T above(int64_t n) const { return 2 * sums[2 * n] + smooth; }
  CREMA_HD T below(int64_t n) const { return sums[2 * n + 1] + smooth; }
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t, int64_t n) const {
    return 1 - above(n) / below(n);
  }
};

template <typename T>
struct MaskGradient {
  Masks<T> masks;
  Overlap<T> overlap;
  const T* weight;
  T share;
  T* dx;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t n = row / masks.channels, channel = row % masks.channels;
    const int64_t i = row * masks.inner + column;
    const T u = overlap.above(n), v = overlap.below(n);
    const T slope = (masks.x[i] * u - masks.target(n, channel, column) * v) / (v * v);
    dx[i] = channel != masks.ignored ? 2 * share * *weight * slope : T(0);
  }
};

class DiceCoefLossLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::loss, .labels = LabelKind::answers};

 private:
  const DiceCoefLossParameter& p() const { return params<DiceCoefLossParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  bool is_loss() const override { return true; }
  LayerTraits traits() const override { return {.reads = {true, false}}; }
  bool differentiable(int bottom) const override { return bottom == 0; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &t = bottoms[1];
    require(x.axes() > 1 && (t.count() == x.count() || t.count() == x[0] * x.count(2)),
            "the second bottom must have a value for each value of ", x.brief(),
            " or a label for each position, but is ", t.brief());
    require(p().smooth() >= 0, "smooth is ", p().smooth(), ", but must be at least 0");
    return {{Shape()}, {{{x[0], 2}, {}}, {{LabelNote::kCount}, DType::i32, true}}};
  }

  LossParts loss_parts(const std::vector<Shape>&) const override {
    return LossParts::all(PartsRule::mean);
  }

  static bool by_label(const std::vector<Tensor>& bottom) {
    return bottom[1].count() != bottom[0].count();
  }
  static TargetRange range() { return {.advice = kScaleMasks}; }

  template <typename T>
  Masks<T> masks(const std::vector<Tensor>& bottom) const {
    const Shape& x = bottom[0].shape();
    return {bottom[0].data<T>(),
            bottom[1].data<T>(),
            x[1],
            x.count(2),
            by_label(bottom),
            p().has_ignore_label() ? p().ignore_label() : -1,
            range().bounds<T>(),
            {}};
  }
  template <typename T>
  Overlap<T> overlap(const Tensor& sums) const {
    return {sums.data<T>(), static_cast<T>(p().smooth())};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Shape& x = pass.bottom[0].shape();
    const bool labels = by_label(pass.bottom);
    if (labels) {
      check_labels(pass.bottom[1], x[1], x.count(2), std::nullopt);
    } else {
      check_targets(pass.bottom[1], range(), x.count(1));
    }
    on(pass.bottom[0], [&]<typename T>() {
      Masks<T> terms = masks<T>(pass.bottom);
      terms.note = {pass.saved[1].data<int32_t>(), x[1], x.count(labels ? 2 : 1), pass.pass,
                    pass.live_pass};
      parallel_sum<T>(context, {2 * x[0], x[1], x.count(2)}, terms, {pass.saved[0].data<T>()});
      parallel_sum<T>(context, {1, 1, x[0]}, overlap<T>(pass.saved[0]),
                      {pass.top[0].data<T>(), T(1) / static_cast<T>(x[0])});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Shape& x = pass.bottom[0].shape();
    on(pass.bottom[0], [&]<typename T>() {
      const MaskGradient<T> gradient{masks<T>(pass.bottom), overlap<T>(pass.saved[0]),
                                     pass.top_diff[0].data<T>(), T(1) / static_cast<T>(x[0]),
                                     pass.bottom_diff[0].data<T>()};
      parallel_rows(context, x.count(0, 2), x.count(2), gradient);
    });
  }

  void check(Context& context, const Forward& pass) const override {
    if (by_label(pass.bottom)) return check_label_note(context, pass.saved[1]);
    check_target_note(context, pass.saved[1], range());
  }
};

}  // namespace
REGISTER_LAYER(DiceCoefLoss, DiceCoefLossLayer);
}  // namespace crema
