// GuidedDropout: dropout of whole channels chosen by a second bottom, the guidance; for nets
// trained on several domains, each with its own useful units.
//   y[n,c,i] = x[n,c,i] * m[n,c] * C / s[n]; no division where s[n] is 0
//   deterministic: m = 1 where g[n,c] > guidance_threshold, else 0; s[n] = sum over c of m[n,c];
//                  in training and in testing
//   stochastic:    m = 1 with probability p = 1 / (1 + exp(-sigmoid_scaler * g[n,c])), else 0;
//                  s[n] = sum over c of p[n,c]; in testing y = x
// Shapes: x (N, C, ...), g (N, C), optionally followed by axes of 1; y as x.
// Parameters: none.
// Gradient: dx = dy * m * C / s; g gets none.
#include <cmath>

#include "kernels/pointwise/batch_values.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "layers/layer.h"
#include "proto/params/activation.pb.h"
#include "tensor/on.h"

namespace crema {
namespace {

// The weight of a channel in s: 0 or 1, or the probability that it is kept.
template <typename T>
struct Guide {
  const T* guidance;
  bool stochastic;
  T threshold, scaler;
  CREMA_HD T share(int64_t i) const {
    if (!stochastic) return guidance[i] > threshold ? T(1) : T(0);
    return 1 / (1 + exp(-scaler * guidance[i]));
  }
};

template <typename Real>
struct ShareOfImage {
  Guide<Real> guide;
  int64_t channels;
  template <typename T>
  CREMA_HD T operator()(int64_t image, int64_t, int64_t channel) const {
    return guide.share(image * channels + channel);
  }
};

template <typename T>
struct FactorOfChannel {
  Guide<T> guide;
  PassRandom random;
  int64_t first;  // channels of the batch before these
  const T* sums;
  T* factors;
  int64_t channels;
  bool all;  // every channel is kept unchanged
  CREMA_HD void operator()(int64_t i) const {
    if (all) {
      factors[i] = 1;
      return;
    }
    const T share = guide.share(i), sum = sums[i / channels];
    const bool kept = guide.stochastic ? random.get().uniform(first + i) < share : share > 0;
    factors[i] = !kept ? T(0) : sum > 0 ? static_cast<T>(channels) / sum : T(1);
  }
};

template <typename T>
struct TimesFactor {
  const T* factors;
  const T* in;
  T* out;
  int64_t positions;
  CREMA_HD void operator()(int64_t row, int64_t position) const {
    out[row * positions + position] = in[row * positions + position] * factors[row];
  }
};

class GuidedDropoutLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::dropout, .keeps_channels = true};

 private:
  const GuidedDropoutParameter& p() const { return params<GuidedDropoutParameter>(); }
  bool stochastic() const { return p().type() == "stochastic"; }

  Arity bottoms() const override { return {2, 2}; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  LayerTraits traits() const override { return {.in_place = true, .reads = {false, false}}; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(stochastic() || p().type() == "deterministic", "guided_dropout_param.type is \"",
            p().type(), "\", but \"deterministic\" or \"stochastic\" is needed");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &g = bottoms[1];
    require(x.axes() >= 2 && g.axes() >= 2 && g[0] == x[0] && g[1] == x[1] && g.count(2) == 1,
            "the second bottom must have one value for each channel of each image of the first, ",
            x.brief(), ", but is ", g.brief());
    return {{x}, {{Shape{x[0], x[1]}, {}}, {Shape{x[0]}, {}}}};
  }

  void times_factor(Context& context, const Tensor& in, const Tensor& factors,
                    const Tensor& out) const {
    const int64_t positions = in.shape().count(2);
    on(in, [&]<typename T>() {
      parallel_rows(context, factors.count(), positions,
                    TimesFactor<T>{factors.data<T>(), in.data<T>(), out.data<T>(), positions});
    });
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &factors = pass.saved[0], &sums = pass.saved[1];
    const int64_t images = x.shape()[0], channels = x.shape()[1];
    on(x, [&]<typename T>() {
      const Guide<T> guide{pass.bottom[1].data<T>(), stochastic(), T(p().guidance_threshold()),
                           T(p().sigmoid_scaler())};
      parallel_sum<T>(context, {images, 1, channels}, ShareOfImage<T>{guide, channels},
                      SumTarget<T>{sums.data<T>()});
      parallel_for(context, factors.count(),
                   FactorOfChannel<T>{guide, context.random(id(), pass.pass, pass.live_pass),
                                      values_before(pass.share, factors.count()), sums.data<T>(),
                                      factors.data<T>(), channels, stochastic() && !training()});
    });
    times_factor(context, x, factors, pass.top[0]);
  }

  void backward(Context& context, const Backward& pass) const override {
    if (!pass.bottom_diff[0]) return;
    times_factor(context, pass.top_diff[0], pass.saved[0], pass.bottom_diff[0]);
  }
};

}  // namespace
REGISTER_LAYER(GuidedDropout, GuidedDropoutLayer);
}  // namespace crema
