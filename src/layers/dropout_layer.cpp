// Dropout: in training a random share of the values is set to zero, so that no unit relies on a
// single other one.
//   training: y = x * mask / (1 - dropout_ratio); mask is 0 with probability dropout_ratio, else 1
//   testing:  y = x
//   with scale_train: false (a fork) instead y = x * mask and y = x * (1 - dropout_ratio)
// Shapes: y as x, any. Parameters: none.
// Gradient: dx = dy with the same mask and factor. The mask is a function of seed, layer and pass:
// backward computes it again.
#include "layers/pointwise_layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

// Random words come in fours, so four channels at one place share a draw: a quad, with channels q,
// q + Q, q + 2Q, q + 3Q of 4Q (the rest of the channels is one more quad). A draw belongs to a quad
// and a logical place: the mask is the same in every order. kLast: a row is one place with its
// quads, else one quad with its places; both lie one after another in memory.
template <typename T, bool kLast, int kWidth>
struct DropoutBody {
  const T* x;
  T* y;
  PassRandom random;
  uint32_t threshold;  // words below it drop
  Compute<T> factor;
  int64_t channels, places, quads;  // of a whole image
  // What this run serves: its quads, their first channel, and how far apart channels of a quad are.
  int64_t first_quad, quad_count, first_channel, channel_step;
  CREMA_HD Compute<T> kept(uint32_t word, T value) const {
    return word < threshold ? Compute<T>(0) : value * factor;
  }
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t image = row / (kLast ? places : quad_count),
                  in_image = row % (kLast ? places : quad_count);
    const int64_t quad = kLast ? column : in_image, place = kLast ? in_image : column;
    const Random::Four words =
        random.get().four((image * quads + first_quad + quad) * places + place);
    const int64_t step = kLast ? channel_step : channel_step * places;
    const int64_t at = kLast ? row * channels + first_channel + quad
                             : (image * channels + first_channel + quad) * places + place;
    y[at] = kept(words.v[0], x[at]);
    if constexpr (kWidth > 1) y[at + step] = kept(words.v[1], x[at + step]);
    if constexpr (kWidth > 2) y[at + 2 * step] = kept(words.v[2], x[at + 2 * step]);
    if constexpr (kWidth > 3) y[at + 3 * step] = kept(words.v[3], x[at + 3 * step]);
  }
};

template <typename T>
struct DropoutRun {
  Context& context;
  const T* x;
  T* y;
  PassRandom random;
  uint32_t threshold;
  Compute<T> factor;
  int64_t images, channels, places;

  template <bool kLast, int kWidth>
  void quads(int64_t first_quad, int64_t count, int64_t first_channel, int64_t channel_step) const {
    const DropoutBody<T, kLast, kWidth> body{
        x,          y,     random,        threshold,   factor, channels, places, (channels + 3) / 4,
        first_quad, count, first_channel, channel_step};
    parallel_rows(context, images * (kLast ? places : count), kLast ? count : places, body);
  }

  template <bool kLast>
  void all() const {
    const int64_t whole = channels / 4;
    quads<kLast, 4>(0, whole, 0, whole);
    switch (channels % 4) {
      case 1:
        return quads<kLast, 1>(whole, 1, 4 * whole, 1);
      case 2:
        return quads<kLast, 2>(whole, 1, 4 * whole, 1);
      case 3:
        return quads<kLast, 3>(whole, 1, 4 * whole, 1);
    }
  }
};

struct Times {
  float factor;
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return x * factor;
  }
};

class DropoutLayer : public PointwiseLayer {
  const DropoutParameter& p() const { return params<DropoutParameter>(); }
  bool drops() const {
    return (training() || p().sample_weights_test()) && p().dropout_ratio() > 0;
  }
  // What is not dropped is multiplied by this.
  float factor() const {
    const float kept = 1 - p().dropout_ratio();
    if (p().scale_train()) return drops() ? 1 / kept : 1;
    return training() ? 1 : kept;
  }
  bool is_view() const override { return !drops() && factor() == 1; }
  BackwardReads reads() const override { return {false, false}; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().dropout_ratio() >= 0 && p().dropout_ratio() < 1, "dropout_ratio is ",
            p().dropout_ratio(), ", but a probability from 0 to below 1 is needed");
  }

  void run(Context& context, const Tensor& x, const Tensor& y, const PassRandom& random) {
    if (!drops()) {
      if (!is_view() || x.raw() != y.raw()) pointwise(context, Times{factor()}, y, x);
      return;
    }
    // Without spatial axes the whole blob is one list of channels at one place.
    const bool spatial = x.shape().axes() >= 3 && x.shape().count(2) > 1;
    const int64_t images = spatial ? x.shape()[0] : 1, places = spatial ? x.shape().count(2) : 1;
    const int64_t channels = spatial ? x.shape()[1] : x.count();
    const uint32_t threshold = static_cast<uint32_t>(p().dropout_ratio() * 4294967296.0);
    on_real(x, [&]<typename T>() {
      const DropoutRun<T> run{context, x.data<T>(), y.data<T>(),
                              random,  threshold,   Compute<T>(factor()),
                              images,  channels,    places};
      if (!spatial || x.format().order == Order::channels_last) {
        run.template all<true>();
      } else {
        run.template all<false>();
      }
    });
  }

  void forward(Context& context, const Forward& pass) override {
    run(context, pass.bottom[0], pass.top[0], context.random(id(), pass.pass, pass.live_pass));
  }
  void backward(Context& context, const Backward& pass) override {
    run(context, pass.top_diff[0], pass.bottom_diff[0],
        context.random(id(), pass.pass, pass.live_pass));
  }
};

}  // namespace
REGISTER_LAYER(Dropout, DropoutLayer);
}  // namespace crema
