// SpatialDropout: in training sets a random fraction of the channels of each image to zero.
//   training: y = x * mask / (1 - dropout_ratio); mask is 0 with probability dropout_ratio, else 1,
//             one for each channel of each image
//   testing:  y = x
// Shapes: x (N, C, spatial...), y as x.
// Parameters: none.
// Gradient: dx = dy with the same mask and factor. The mask is a function of seed, layer and pass:
// backward recomputes it.
#include <type_traits>
#include <vector>

#include "kernels/core/divisor.h"
#include "kernels/pointwise/batch_values.h"
#include "kernels/pointwise/pointwise.h"
#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

// The factor of a channel, counted through all images.
template <typename C>
struct ChannelFactor {
  PassRandom random;
  int64_t first;       // channels of the batch before these
  uint32_t threshold;  // random words below it drop
  C factor;
  CREMA_HD C operator()(int64_t channel) const {
    return random.get().word(first + channel) < threshold ? C(0) : factor;
  }
};

// Factors computed beforehand.
template <typename C>
struct FoundFactor {
  const C* factors;
  CREMA_HD C operator()(int64_t channel) const { return factors[channel]; }
};

// kLast: a row is a position and its columns are the channels; else a row is a channel.
template <typename T, bool kLast, typename Factor>
struct SpatialDropoutBody {
  const T* x;
  T* y;
  Factor factor;
  int64_t positions, columns;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t channel = kLast ? row / positions * columns + column : row,
                  i = row * columns + column;
    const Compute<T> by = factor(channel), value = Compute<T>(x[i]) * by;
    y[i] = by == 0 ? Compute<T>(0) : value;
  }
};

// GPU version. Channels-last: a thread takes the same pack of channels at adjacent positions and
// computes its mask once; row-major: a pack of one channel's positions.
template <typename T, bool kLast>
struct SpatialDropoutPacks {
  static constexpr int kPack = kPackCount<T>, kPositions = 4;
  const WidePack<T>* x;
  WidePack<T>* y;
  PassRandom random;
  int64_t first;  // as in ChannelFactor
  uint32_t threshold;
  Compute<T> factor;
  // packs: per position, or in row-major order per channel; runs: of kPositions positions, per
  // image.
  Divisor packs, runs;
  int64_t positions;

  // Four words at a time, unless the pack begins inside of a draw.
  CREMA_HD void draw(const Random& words, int64_t channel, Compute<T> (&factors)[kPack]) const {
    if (channel % 4 == 0 && kPack % 4 == 0) {
      for (int quad = 0; quad < kPack / 4; ++quad) {
        const Random::Four four = words.four(channel / 4 + quad);
        for (int k = 0; k < 4; ++k)
          factors[quad * 4 + k] = four.v[k] < threshold ? Compute<T>(0) : factor;
      }
      return;
    }
    for (int k = 0; k < kPack; ++k)
      factors[k] = words.word(channel + k) < threshold ? Compute<T>(0) : factor;
  }

  CREMA_HD void operator()(int64_t i) const {
    uint32_t pack = static_cast<uint32_t>(i), run = packs.split(pack);
    const Random words = random.get();
    Compute<T> factors[kPack];
    int64_t at = i, step = 0;
    int count = 1;
    if constexpr (kLast) {
      const int64_t image = runs.split(run), across = packs.value,
                    begin = int64_t{run} * kPositions;
      draw(words, first + (image * across + pack) * kPack, factors);
      at = (image * positions + begin) * across + pack, step = across;
      count = positions - begin < kPositions ? static_cast<int>(positions - begin) : kPositions;
    } else {
      const Compute<T> one = words.word(first + run) < threshold ? Compute<T>(0) : factor;
      for (Compute<T>& each : factors) each = one;
    }
    WidePack<T> p[kPositions];
    for (int n = 0; n < kPositions; ++n) {
      if (n < count) p[n] = x[at + n * step];
    }
    for (int n = 0; n < kPositions; ++n) {
      if (n >= count) continue;
      for (int k = 0; k < kPack; ++k) p[n].v[k] = Compute<T>(p[n].v[k]) * factors[k];
      y[at + n * step] = p[n];
    }
  }
};

class SpatialDropoutLayer : public PointwiseLayer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::dropout, .elementwise = true, .keeps_zero = true};

 private:
  // Random numbers are those of the samples of axis 0.
  bool independent_along(int, int axis, const std::vector<Shape>&) const override {
    return axis == 0;
  }
  float ratio() const { return params<SpatialDropoutParameter>().dropout_ratio(); }
  LayerTraits traits() const override {
    LayerTraits traits = PointwiseLayer::traits();
    traits.is_view = !training() || ratio() == 0;
    traits.reads = {false, false};
    return traits;
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(ratio() >= 0 && ratio() < 1, "dropout_ratio is ", ratio(),
            ", but a probability from 0 to below 1 is needed");
    require(bottoms[0].axes() >= 2,
            "SpatialDropout needs a bottom with channels (2 axes or more), this one is ",
            bottoms[0].brief());
  }

  template <typename Pass>
  void run(Context& context, const Pass& pass, const Tensor& x, const Tensor& y) const {
    if (traits().is_view) return;
    const PassRandom random = context.random(id(), pass.pass, pass.live_pass);
    const int64_t first = values_before(pass.share, x.shape().count(0, 2));
    const uint32_t threshold = static_cast<uint32_t>(ratio() * 4294967296.0);
    const int64_t positions = x.shape().count(2);
    on_real(x, [&]<typename T>() {
      const Compute<T> factor = 1 / (1 - ratio());
      const auto with = [&]<bool kLast>() {
        const int64_t columns = kLast ? x.shape()[1] : positions;
        if (context.device() == Device::gpu && x.count() < Divisor::kMax &&
            takes_packs<T>(columns, x.raw(), y.raw())) {
          using Body = SpatialDropoutPacks<T, kLast>;
          const int64_t packs = columns / kPackCount<T>, each = Body::kPositions,
                        runs = (positions + each - 1) / each,
                        threads = kLast ? x.shape()[0] * runs * packs : x.count() / kPackCount<T>;
          parallel_for(context, threads,
                       Body{x.data<WidePack<T>>(), y.data<WidePack<T>>(), random, first, threshold,
                            factor, Divisor(packs), Divisor(runs), positions});
          return;
        }
        const ChannelFactor<Compute<T>> drawn{random, first, threshold, factor};
        const auto over_rows = [&](const auto& found) {
          using Body = SpatialDropoutBody<T, kLast, std::decay_t<decltype(found)>>;
          parallel_rows(context, x.count() / columns, columns,
                        Body{x.data<T>(), y.data<T>(), found, positions, columns});
        };
        if (context.device() == Device::gpu) return over_rows(drawn);
        std::vector<Compute<T>> factors(x.shape().count(0, 2));
        for (size_t channel = 0; channel < factors.size(); ++channel)
          factors[channel] = drawn(static_cast<int64_t>(channel));
        over_rows(FoundFactor<Compute<T>>{factors.data()});
      };
      if (x.format().order == Order::channels_last) return with.template operator()<true>();
      with.template operator()<false>();
    });
  }

  void forward(Context& context, const Forward& pass) const override {
    run(context, pass, pass.bottom[0], pass.top[0]);
  }
  void backward(Context& context, const Backward& pass) const override {
    run(context, pass, pass.top_diff[0], pass.bottom_diff[0]);
  }
};

}  // namespace
REGISTER_LAYER(SpatialDropout, SpatialDropoutLayer);
}  // namespace crema
