// GRN (OpenVINO's Caffe): divides each value by the length of the vector of channels at its position.
//   y[n,c,i] = x[n,c,i] / sqrt(bias + sum over k of x[n,k,i]^2)
// Shapes: y as x, (N, C, spatial...).
// Parameters: none. bias is a number of the file, 1 unless given.
// Gradient: dx = s * (dy - y * sum over k of dy[k] * y[k]), where s is 1 over that square root.
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"
#include "proto/params/normalization.pb.h"

namespace crema {
namespace {

// Both passes of all channels at a position.
template <typename T>
struct GrnBody {
  const T *x, *dy;  // dy: null in forward
  T* out;
  int64_t channels, positions;
  T bias;
  CREMA_HD void operator()(int64_t image, int64_t position) const {
    const int64_t first = image * channels * positions + position;
    T squares = bias, products = 0;
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t i = first + c * positions;
      squares += x[i] * x[i];
      if (dy) products += dy[i] * x[i];
    }
    const T scale = 1 / sqrt(squares);
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t i = first + c * positions;
      out[i] = scale * (dy ? dy[i] - x[i] * products / squares : x[i]);
    }
  }
};

class GrnLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::norm, .along_channels = true, .keeps_channels = true};

 private:
  float bias() const { return params<GRNParameter>().bias(); }
  LayerTraits traits() const override { return {.reads = {true, false}}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    require(bottoms[0].axes() >= 2, "GRN takes the length along axis 1, but the bottom is ",
            bottoms[0].brief());
    require(bias() > 0, "bias is ", bias(), ", but must be positive: zeros have length 0");
    return {{bottoms[0]}, {}};
  }

  void run(Context& context, const Tensor& x, const Tensor& dy, const Tensor& out) const {
    const int64_t channels = x.shape()[1], positions = x.shape().count(2);
    on(x, [&]<typename T>() {
      parallel_rows(context, x.shape()[0], positions,
                    GrnBody<T>{x.data<T>(), dy ? dy.data<T>() : nullptr, out.data<T>(), channels,
                               positions, static_cast<T>(bias())});
    });
  }

  void forward(Context& context, const Forward& pass) const override {
    run(context, pass.bottom[0], {}, pass.top[0]);
  }
  void backward(Context& context, const Backward& pass) const override {
    run(context, pass.bottom[0], pass.top_diff[0], pass.bottom_diff[0]);
  }
};

}  // namespace
REGISTER_LAYER(GRN, GrnLayer);
}  // namespace crema
