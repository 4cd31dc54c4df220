// Mean (FlowNet): adds or subtracts fixed values.
//   y = output_scale * (input_scale * x + mean_scale * m), or - with operation: SUBTRACT
//   m: a mean image from a file, or one value for each channel; both repeat over the channels
// Shapes: each y as its x, (N, C, spatial...); there may be several.
// Parameters: none.
// Gradient: dx = output_scale * input_scale * dy.
#include "base/files.h"
#include "data/transforms/mean.h"
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"
#include "proto/params/forks_flow.pb.h"

namespace crema {
namespace {

template <typename T>
struct ShiftBody {
  const T* x;
  const float* mean;
  T* y;
  int64_t values, period, each;  // in a sample and in the mean; values of x for one of the mean
  T scale, shift;
  CREMA_HD void operator()(int64_t sample, int64_t i) const {
    const int64_t at = sample * values + i;
    y[at] = scale * x[at] + shift * static_cast<T>(mean[i / each % period]);
  }
};

struct Times {
  float factor;
  template <typename T>
  CREMA_HD T operator()(T dy) const {
    return factor * dy;
  }
};

class MeanLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::affine, .keeps_channels = true};

 private:
  const MeanParameter& p() const { return params<MeanParameter>(); }
  Arity bottoms() const override { return {1, -1}; }
  Arity tops() const override { return {1, -1}; }
  bool as_many_tops_as_bottoms() const override { return true; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().has_operation(), "mean_param needs an operation: ADD or SUBTRACT");
    require(p().has_file() != (p().value_size() > 0),
            "mean_param needs either a `file` with the mean image or one `value` for each channel");
    if (p().has_file()) {
      Mean mean = read_mean(find_file(p().file(), folder()));
      shape_ = mean.shape;
      values_ = std::move(mean.values);
    } else {
      values_.assign(p().value().begin(), p().value().end());
    }
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    for (const Shape& x : bottoms) {
      require(x.axes() >= 2, "the mean is one of channels, axis 1, but a bottom is ", x.brief());
      const int64_t channels = p().has_file() ? shape_[0] : p().value_size();
      require(x[1] % channels == 0 && (!p().has_file() || x.count(2) == shape_.count(1)),
              "the mean is ", p().has_file() ? shape_.brief() : cat(channels, " values"),
              ", which does not go into a bottom of ", x.brief());
    }
    return {bottoms, {}};
  }

  struct State : LayerState {
    Tensor mean;
  };

  Prepared prepare(Context& context, const Preparation&) const override {
    Prepared prepared;
    Tensor& mean = prepared.make_state<State>().mean;
    mean = Tensor(context, Shape{static_cast<int64_t>(values_.size())});
    from_floats(context, values_.data(), mean);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& mean = state_of<State>(pass).mean;
    const double sign = p().operation() == MeanParameter::SUBTRACT ? -1 : 1;
    for (size_t k = 0; k < pass.bottom.size(); ++k) {
      const Tensor& x = pass.bottom[k];
      const int64_t values = x.shape().count(1), each = p().has_file() ? 1 : x.shape().count(2);
      on(x, [&]<typename T>() {
        parallel_rows(
            context, x.shape()[0], values,
            ShiftBody<T>{x.data<T>(), mean.data<float>(), pass.top[k].data<T>(), values,
                         mean.count(), each, static_cast<T>(p().output_scale()) * p().input_scale(),
                         static_cast<T>(sign * p().output_scale()) * p().mean_scale()});
      });
    }
  }

  void backward(Context& context, const Backward& pass) const override {
    for (size_t k = 0; k < pass.bottom_diff.size(); ++k) {
      if (pass.bottom_diff[k] && pass.top_diff[k])
        pointwise(context, Times{p().output_scale() * p().input_scale()}, pass.bottom_diff[k],
                  pass.top_diff[k]);
    }
  }

  Shape shape_;  // of the mean image
  std::vector<float> values_;
};

}  // namespace
REGISTER_LAYER(Mean, MeanLayer);
}  // namespace crema
