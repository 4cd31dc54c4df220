// ChannelNorm (FlowNet): the length of the vector of channels at each position.
//   y[n,0,i] = sqrt(sum over c of x[n,c,i]^2)
// Shapes: x (N, C, spatial...), y (N, 1, spatial...).
// Parameters: none.
// Gradient: dx = dy * x / (y + 1e-9), so that it is 0 where all channels are.
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"

namespace crema {
namespace {

template <typename T>
struct LengthBody {
  const T* x;
  T* y;
  int64_t channels, positions;
  CREMA_HD void operator()(int64_t image, int64_t position) const {
    T sum = 0;
    for (int64_t c = 0; c < channels; ++c) {
      const T value = x[(image * channels + c) * positions + position];
      sum += value * value;
    }
    y[image * positions + position] = sqrt(sum);
  }
};

template <typename T>
struct LengthGradient {
  const T *x, *y, *dy;
  T* dx;
  int64_t channels, positions;
  CREMA_HD void operator()(int64_t plane, int64_t position) const {
    const int64_t i = plane * positions + position, k = plane / channels * positions + position;
    dx[i] = dy[k] * x[i] / (y[k] + T(1e-9));
  }
};

class ChannelNormLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::reduction, .along_channels = true};

 private:
  Inference infer(const std::vector<Shape>& bottoms) const override {
    Shape y = bottoms[0];
    require(y.axes() >= 2, "ChannelNorm takes the length along axis 1, but the bottom is ",
            y.brief());
    y[1] = 1;
    return {{y}, {}};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    const int64_t channels = x.shape()[1], positions = x.shape().count(2);
    on(x, [&]<typename T>() {
      parallel_rows(context, x.shape()[0], positions,
                    LengthBody<T>{x.data<T>(), y.data<T>(), channels, positions});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &x = pass.bottom[0], &dx = pass.bottom_diff[0];
    const int64_t channels = x.shape()[1], positions = x.shape().count(2);
    on(x, [&]<typename T>() {
      parallel_rows(
          context, x.shape().count(0, 2), positions,
          LengthGradient<T>{x.data<T>(), pass.top[0].data<T>(), pass.top_diff[0].data<T>(),
                            dx.data<T>(), channels, positions});
    });
  }
};

}  // namespace
REGISTER_LAYER(ChannelNorm, ChannelNormLayer);
}  // namespace crema
