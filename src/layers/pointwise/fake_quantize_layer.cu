// FakeQuantize: rounds values to integers of few bits, times a step, so that a net learns with them. `quantize` in
// the solver adds these layers; `crema quantize` reads their ranges.
//   y = s * clamp(round(x / s)), halves to the even integer
// If lowest >= 0, the integers go from 0 to m = 2^bits - 1, and s = highest / m; otherwise from -m - 1 to
// m = 2^(bits - 1) - 1, and s = max(-lowest, highest) / m. s is multiplied by the factor f.
// Training passes first move lowest and highest: to those of the batch in the first pass, then to decay
// times themselves plus 1 - decay times those of the batch. Both 0: nothing is rounded.
// Shapes: y as x, any.
// Parameters: lowest and highest (2), which are measured, not learned; the factor f (1), from 1, learned with
// LEARNED alone.
// Gradient: dx = dy where x is not clipped, else 0; df = sum of dy * (y - x) / f, and of dy * y / f where x is clipped.
#include <cmath>

#include "kernels/reduce/extremes.h"
#include "kernels/reduce/reduce.h"
#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/quantization.pb.h"
#include "tensor/on.h"
#include "tensor/part.h"

namespace crema {
namespace {

// The integers and the step, from parameters on the device.
template <typename C>
struct FakeIntegers {
  const C* range;  // lowest, highest
  const C* factor;
  int bits;
  CREMA_HD bool has_sign() const { return range[0] < 0; }
  CREMA_HD C high() const {
    return static_cast<C>((int64_t{1} << (has_sign() ? bits - 1 : bits)) - 1);
  }
  CREMA_HD C low() const { return has_sign() ? -high() - 1 : C(0); }
  CREMA_HD C step() const {
    const C most = -range[0] > range[1] ? -range[0] : range[1];
    return *factor * most / high();
  }
};

template <typename C>
struct MoveRange {
  const C *lowest, *highest;  // the extremes of this batch
  C decay;
  C* range;
  CREMA_HD void operator()(int64_t) const {
    const bool first = range[0] == 0 && range[1] == 0;
    const C kept = first ? C(0) : decay;
    range[0] = kept * range[0] + (1 - kept) * *lowest;
    range[1] = kept * range[1] + (1 - kept) * *highest;
  }
};

template <typename C>
struct FakeRounded {
  C step, low, high;
  CREMA_HD explicit FakeRounded(const FakeIntegers<C>& integers)
      : step(integers.step()), low(integers.low()), high(integers.high()) {}
  CREMA_HD bool rounds() const { return step > 0; }
  CREMA_HD C value(C x) const {
    if (!rounds()) return x;
    const C n = std::rint(x / step);
    return step * (n < low ? low : n > high ? high : n);
  }
  CREMA_HD bool clips(C x) const {
    const C n = std::rint(x / step);
    return rounds() && (n < low || n > high);
  }
};

template <typename T>
struct RoundFake {
  const T* x;
  T* y;
  FakeIntegers<Compute<T>> integers;
  CREMA_HD void operator()(int64_t i) const {
    y[i] = FakeRounded<Compute<T>>(integers).value(Compute<T>(x[i]));
  }
};

template <typename T>
struct PassUnclipped {
  const T *dy, *x;
  T* dx;
  FakeIntegers<Compute<T>> integers;
  CREMA_HD void operator()(int64_t i) const {
    const bool clips = FakeRounded<Compute<T>>(integers).clips(Compute<T>(x[i]));
    dx[i] = clips ? Compute<T>(0) : Compute<T>(dy[i]);
  }
};

// A term of df.
template <typename T>
struct FactorSlope {
  const T *dy, *x;
  FakeIntegers<Compute<T>> integers;
  template <typename>
  CREMA_HD Compute<T> operator()(int64_t, int64_t, int64_t i) const {
    const FakeRounded<Compute<T>> rounded(integers);
    if (!rounded.rounds()) return 0;
    const Compute<T> value = Compute<T>(x[i]), y = rounded.value(value);
    return Compute<T>(dy[i]) * (rounded.clips(value) ? y : y - value) / *integers.factor;
  }
};

class FakeQuantizeLayer : public PointwiseLayer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::math, .elementwise = true, .keeps_zero = true, .in_use = InUse::bypassed};

 private:
  struct State : LayerState {
    bool rounds = true;
  };

  const FakeQuantizeParameter& p() const { return params<FakeQuantizeParameter>(); }
  bool learns() const { return p().range() == FakeQuantizeParameter::LEARNED; }

  LayerTraits traits() const override {
    return {.order_rule = OrderRule::any,
            .half_rule = HalfRule::follows,
            .reads = {true, false},
            .batch_statistics = training(),
            .recomputes = true};
  }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().bits() >= 2 && p().bits() <= 24, "bits is ", p().bits(), "; expected 2 to 24");
    require(p().decay() >= 0 && p().decay() <= 1, "decay is ", p().decay(), "; expected 0 to 1");
    add_parameter({2}, FillerParameter::default_instance(), false);
    one_.set_value(1);
    add_parameter({1}, one_, learns());
  }

  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    prepared.make_state<State>().rounds = preparation.rounds;
    if (!training()) return prepared;
    int64_t size = preparation.bottoms[0].count();
    if (const int64_t channels = preparation.bottom_channels[0]; channels > 0)
      size = size / preparation.bottoms[0][1] * channels;
    // The extremes of the batch, and what finding them takes.
    prepared.workspace = 2 * kExtreme + extremes_workspace(1, size);
    return prepared;
  }

  template <typename C, typename Pass>
  FakeIntegers<C> integers(const Pass& pass) const {
    return {pass.parameters[0].template data<C>(), pass.parameters[1].template data<C>(),
            static_cast<int>(p().bits())};
  }

  void move_range(Context& context, const Forward& pass) const {
    const Tensor &range = pass.parameters[0], &memory = pass.workspace;
    const Tensor lowest = part_of(memory, 0, {1}, range.dtype()),
                 highest = part_of(memory, kExtreme, {1}, range.dtype());
    extremes(context, pass.bottom[0], 1, lowest, highest,
             part_of(memory, 2 * kExtreme, {memory.count() - 2 * kExtreme}, DType::u8));
    on_real(pass.bottom[0], [&]<typename T>() {
      using C = Compute<T>;
      parallel_for(context, 1,
                   MoveRange<C>{lowest.data<C>(), highest.data<C>(), static_cast<C>(p().decay()),
                                range.data<C>()});
    });
  }

  void forward(Context& context, const Forward& pass) const override {
    if (training()) move_range(context, pass);
    recompute(context, pass);
  }

  void recompute(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    if (!state_of<State>(pass).rounds) return copy(context, x, y);
    on_real(x, [&]<typename T>() {
      parallel_for(context, x.elements(),
                   RoundFake<T>{x.data<T>(), y.data<T>(), integers<Compute<T>>(pass)});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &x = pass.bottom[0], &dy = pass.top_diff[0], &dx = pass.bottom_diff[0];
    const bool rounds = state_of<State>(pass).rounds;
    on_real(x, [&]<typename T>() {
      using C = Compute<T>;
      const T* const values = x.data<T>();
      if (learns() && pass.parameter_diff[1]) {
        SumTarget<C> df{pass.parameter_diff[1].data<C>(), rounds ? C(1) : C(0),
                        pass.accumulate[1] != 0};
        parallel_sum<C>(context, {1, 1, x.elements()},
                        FactorSlope<T>{dy.data<T>(), values, integers<C>(pass)}, df);
      }
      if (!dx) return;
      if (!rounds) return copy(context, dy, dx);
      parallel_for(context, x.elements(),
                   PassUnclipped<T>{dy.data<T>(), values, dx.data<T>(), integers<C>(pass)});
    });
  }

  static constexpr int64_t kExtreme = 64;  // bytes
  FillerParameter one_;
};

}  // namespace
REGISTER_LAYER(FakeQuantize, FakeQuantizeLayer);
}  // namespace crema
