// Parameter: a learned blob as a top, for other layers to read.
//   y = w
// Shapes: y and w as parameter_param { shape } says.
// Parameters: w (0 if no filler is given).
// Gradient: dw = dy.
#include "kernels/pointwise/add.h"
#include "layers/layer.h"
#include "proto/params/input.pb.h"

namespace crema {
namespace {

class ParameterLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.learned = 1};

 private:
  const ParameterParameter& p() const { return params<ParameterParameter>(); }
  Arity bottoms() const override { return {0, 0}; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }
  Shape shape() const {
    return Shape(std::vector<int64_t>(p().shape().dim().begin(), p().shape().dim().end()));
  }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().has_shape(),
            "Parameter needs the shape of its blob: parameter_param { shape { dim: 10 } }, for "
            "example");
    for (const int64_t extent : p().shape().dim())
      require(extent > 0, "dim ", extent, " is not an extent: it must be positive");
    add_parameter(shape(), p().blob_filler());
  }

  Inference infer(const std::vector<Shape>&) const override { return {{shape()}, {}}; }

  void forward(Context& context, const Forward& pass) const override {
    copy(context, pass.parameters[0], pass.top[0]);
  }

  void backward(Context& context, const Backward& pass) const override {
    if (!pass.parameter_diff[0]) return;
    if (pass.accumulate[0]) {
      add_to(context, pass.top_diff[0], pass.parameter_diff[0]);
    } else {
      copy(context, pass.top_diff[0], pass.parameter_diff[0]);
    }
  }
};

}  // namespace
REGISTER_LAYER(Parameter, ParameterLayer);
}  // namespace crema
