// ChannelScale: scales each position of each image by one factor for all channels: it restores the
// length of normalized face features.
//   y[n,c,i] = s[n,i] * x[n,c,i]
// With global_scale y = g * x instead, g clipped to min_global_scale and max_global_scale. Without
// do_forward y = x.
// Shapes: x (N, C, spatial...), s with one value per position of each image; y as x.
// Parameters: with global_scale g (initially init_global_scale), which is not learned.
// Gradient: dx = s * dy (g * dy; dy without do_backward_feature), ds[n,i] = sum over c of dy * x, 0
// without do_backward_scale and with global_scale.
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "layers/layer.h"
#include "proto/params/forks_face.pb.h"

namespace crema {
namespace {

// The factors of x: one per position, or one for all.
template <typename T>
struct Factors {
  const T* values;
  int64_t channels, positions;
  bool global;
  T minimum, maximum;
  CREMA_HD T at(int64_t row, int64_t position) const {
    if (!global) return values[row / channels * positions + position];
    const T value = values[0] < minimum ? minimum : values[0];
    return value > maximum ? maximum : value;
  }
};

template <typename T>
struct ChannelScaleBody {
  Factors<T> factors;
  const T* in;
  T* out;
  CREMA_HD void operator()(int64_t row, int64_t position) const {
    const int64_t i = row * factors.positions + position;
    out[i] = factors.at(row, position) * in[i];
  }
};

template <typename Real>
struct ChannelScaleTerm {
  const Real *dy, *x;
  int64_t channels, positions;
  template <typename T>
  CREMA_HD T operator()(int64_t k, int64_t row, int64_t column) const {
    const int64_t i = (k / positions * channels + row + column) * positions + k % positions;
    return dy[i] * x[i];
  }
};

class ChannelScaleLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::affine, .along_channels = true, .keeps_channels = true};

 private:
  const ChannelScaleParameter& p() const { return params<ChannelScaleParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  LayerTraits traits() const override { return {.reads = {true, false}}; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().min_global_scale() <= p().max_global_scale(), "min_global_scale, ",
            p().min_global_scale(), ", is larger than max_global_scale, ", p().max_global_scale());
    filler_.set_value(p().init_global_scale());
    if (p().global_scale()) add_parameter({1}, filler_, false);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &s = bottoms[1];
    require(x.axes() >= 2 && s.axes() >= 1 && s[0] == x[0] && s.count() * x[1] == x.count(),
            "the second bottom must have one value for each position of each image of the first, ",
            x.brief(), ", but is ", s.brief());
    return {{x}, {}};
  }

  template <typename T>
  Factors<T> factors(const Shape& x, const Tensor& values) const {
    return {values.data<T>(),      x[1], x.count(2), p().global_scale(), p().min_global_scale(),
            p().max_global_scale()};
  }

  void run(Context& context, const Tensor& in, const Tensor& values, const Tensor& out) const {
    on(in, [&]<typename T>() {
      const Shape& shape = in.shape();
      parallel_rows(context, shape.count(0, 2), shape.count(2),
                    ChannelScaleBody<T>{factors<T>(shape, values), in.data<T>(), out.data<T>()});
    });
  }

  void forward(Context& context, const Forward& pass) const override {
    if (!p().do_forward()) return copy(context, pass.bottom[0], pass.top[0]);
    run(context, pass.bottom[0], p().global_scale() ? pass.parameters[0] : pass.bottom[1],
        pass.top[0]);
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &dy = pass.top_diff[0], &dx = pass.bottom_diff[0], &ds = pass.bottom_diff[1];
    if (ds && (p().global_scale() || !p().do_backward_scale())) {
      zero(context, ds);
    } else if (ds) {
      on(ds, [&]<typename T>() {
        const Shape& shape = dy.shape();
        const int64_t channels = shape[1], positions = shape.count(2);
        const SumExtent each_position = positions == 1 ? SumExtent{ds.count(), 1, channels}
                                                       : SumExtent{ds.count(), channels, 1};
        parallel_sum<T>(
            context, each_position,
            ChannelScaleTerm<T>{dy.data<T>(), pass.bottom[0].data<T>(), channels, positions},
            {ds.data<T>()});
      });
    }
    if (!dx) return;
    if (!p().do_backward_feature()) return copy(context, dy, dx);
    run(context, dy, p().global_scale() ? pass.parameters[0] : pass.bottom[1], dx);
  }

  FillerParameter filler_;
};

}  // namespace
REGISTER_LAYER(ChannelScale, ChannelScaleLayer);
}  // namespace crema
