// SeLuDropout (forks): Dropout for nets of SELU, whose values keep their mean and variance.
//   training: y = a * x + b, or a * alpha + b with probability dropout_ratio;
//             with q = 1 - dropout_ratio: a = (q (1 + (1 - q) alpha^2))^(-1/2), b = -a (1 - q)
//             alpha
//   testing:  y = x
// Shapes: y as x, any. Parameters: none.
// Gradient: dx = a * dy, or 0 where x was dropped. What is dropped is a function of seed, layer and
// pass: backward computes it again.
#include <cmath>

#include "layers/pointwise_layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

// y = kept * x + shift, or dropped. A word belongs to a logical place, so that drops are the same
// in every order; channels: of an image in channels-last order, else 0.
template <typename T>
struct SeluDropoutBody {
  const T* x;
  T* y;
  PassRandom random;
  uint32_t threshold;  // words below it drop
  Compute<T> kept, shift, dropped;
  int64_t channels, places;
  CREMA_HD void operator()(int64_t i) const {
    int64_t at = i;
    if (channels > 0) {
      const int64_t image = i / (channels * places);
      at = (image * channels + i % channels) * places + i / channels % places;
    }
    const bool drops = random.get().word(static_cast<uint64_t>(at)) < threshold;
    y[i] = drops ? dropped : kept * Compute<T>(x[i]) + shift;
  }
};

class SeluDropoutLayer : public PointwiseLayer {
  const SeLuDropoutParameter& p() const { return params<SeLuDropoutParameter>(); }
  bool is_view() const override { return !training(); }
  BackwardReads reads() const override { return {false, false}; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().dropout_ratio() > 0 && p().dropout_ratio() < 1, "dropout_ratio is ",
            p().dropout_ratio(), ", but a probability above 0 and below 1 is needed");
  }

  // values: forward, else the gradient.
  void run(Context& context, const Tensor& x, const Tensor& y, const PassRandom& random,
           bool values) const {
    if (!training()) return pointwise_copy(context, y, x);
    const double alpha = p().alpha(), share = p().dropout_ratio();
    const double a = 1 / std::sqrt((1 - share) * (1 + share * alpha * alpha));
    const double b = values ? -a * share * alpha : 0;
    const bool last = x.format().order == Order::channels_last && x.shape().axes() >= 3;
    on_real(x, [&]<typename T>() {
      using C = Compute<T>;
      parallel_for(context, x.count(),
                   SeluDropoutBody<T>{x.data<T>(), y.data<T>(), random,
                                      static_cast<uint32_t>(share * 4294967296.0), C(a), C(b),
                                      C(values ? a * alpha + b : 0), last ? x.shape()[1] : 0,
                                      last ? x.shape().count(2) : 1});
    });
  }

  void forward(Context& context, const Forward& pass) override {
    run(context, pass.bottom[0], pass.top[0], context.random(id(), pass.pass, pass.live_pass),
        true);
  }
  void backward(Context& context, const Backward& pass) override {
    run(context, pass.top_diff[0], pass.bottom_diff[0],
        context.random(id(), pass.pass, pass.live_pass), false);
  }
};

}  // namespace
REGISTER_LAYER(SeLuDropout, SeluDropoutLayer);
}  // namespace crema
