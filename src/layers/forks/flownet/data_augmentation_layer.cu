// DataAugmentation (FlowNet), as trained nets use it: the centre of an image minus the mean
// measured in training.
//   y[n,c,h,w] = x[n,c] at row h + (H - crop_height) / 2 and column w + (W - crop_width) / 2 - m
// Shapes: x (N, C, H, W), y (N, C, crop_height, crop_width); both are H and W unless given.
// Parameters: with recompute_mean m, not learned: (1, C, 1, 1), or (1, C, crop_height, crop_width)
// with mean_per_pixel. FlowNet's weight files have it after a count of iterations. Without
// recompute_mean m is `mean`, one number for each channel, or 0.
// Gradient: none, because it works on data. The phase TRAIN is refused: transform_param { augment {
// } } of a data layer changes images at random.
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"
#include "proto/filler.pb.h"
#include "proto/params/forks_flow.pb.h"

namespace crema {
namespace {

template <typename T>
struct MiddleBody {
  const T *x, *mean;  // mean: null for none
  T* y;
  int64_t channels, in_height, in_width, height, width;
  bool per_pixel;
  CREMA_HD void operator()(int64_t row, int64_t w) const {
    const int64_t plane = row / height, h = row % height, c = plane % channels;
    const int64_t from = h + (in_height - height) / 2, column = w + (in_width - width) / 2;
    const T m = !mean ? T(0) : per_pixel ? mean[(c * height + h) * width + w] : mean[c];
    y[row * width + w] = x[(plane * in_height + from) * in_width + column] - m;
  }
};

class DataAugmentationLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::resize, .keeps_channels = true};

 private:
  const AugmentationParameter& p() const { return params<AugmentationParameter>(); }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }
  int64_t height(const Shape& x) const { return p().crop_height() ? p().crop_height() : x[2]; }
  int64_t width(const Shape& x) const { return p().crop_width() ? p().crop_width() : x[3]; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(!training() && !p().augment_during_test(),
            "DataAugmentation serves trained nets here, phase TEST without augment_during_test; "
            "transform_param { augment { } } of a data layer changes images at random");
    const Shape& x = bottoms[0];
    require(x.axes() == 4, "DataAugmentation takes images (N, C, H, W), but the bottom is ",
            x.brief());
    require(height(x) <= x[2] && width(x) <= x[3], "a crop of ", height(x), "x", width(x),
            " does not fit into images of ", x.brief());
    const bool measured = p().recompute_mean() > 0;
    require(measured || p().mean_size() == 0 || (p().mean_size() == x[1] && !p().mean_per_pixel()),
            "`mean` is given once for each channel, with mean_per_pixel: false, but there are ",
            p().mean_size(), " for ", x[1], " channels");
    if (measured) {
      add_parameter(
          p().mean_per_pixel() ? Shape{1, x[1], height(x), width(x)} : Shape{1, x[1], 1, 1}, zero_,
          false);
    }
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    return {{{x[0], x[1], height(x), width(x)}}, {}};
  }

  struct State : LayerState {
    Tensor mean;  // empty: measured, or none
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    Prepared prepared;
    Tensor& mean = prepared.make_state<State>().mean;
    if (p().mean_size() == 0) return prepared;
    mean = Tensor(context, Shape{p().mean_size()}, preparation.dtype);
    from_floats(context, p().mean().data(), mean);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    const bool measured = p().recompute_mean() > 0;
    on(x, [&]<typename T>() {
      const Shape &in = x.shape(), &out = y.shape();
      const Tensor& mean = measured ? pass.parameters[0] : state_of<State>(pass).mean;
      parallel_rows(context, out.count(0, 3), out[3],
                    MiddleBody<T>{x.data<T>(), mean ? mean.data<T>() : nullptr, y.data<T>(), in[1],
                                  in[2], in[3], out[2], out[3], measured && p().mean_per_pixel()});
    });
  }
  void backward(Context&, const Backward&) const override {}

  FillerParameter zero_;
};

}  // namespace
REGISTER_LAYER(DataAugmentation, DataAugmentationLayer);
}  // namespace crema
