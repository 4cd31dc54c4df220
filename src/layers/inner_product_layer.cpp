// InnerProduct (fully connected): every output is a weighted sum of all inputs of a sample.
//   y[m,n] = b[n] + sum over k of x[m,k] * w[n,k]
// Shapes: x with the axes before `axis` as m and the rest as k; y keeps the former and has
// num_output in place of the latter.
// Parameters: w (num_output, K), or (K, num_output) with transpose; b (num_output) unless bias_term
// is false.
// Gradient: dx = dy w, dw = dy' x, db sums dy over m.
// InnerProduct+ReLU is the same with a ReLU (relu_param) at its end; the planner makes it.
#include "kernels/bias.h"
#include "kernels/gemm.h"
#include "layers/layer.h"
#include "proto/params/activation.pb.h"
#include "proto/params/dense.pb.h"
#include "tensor/on.h"

namespace crema {
namespace {

class InnerProductLayer : public Layer {
  BackwardReads reads() const override { return {true, relu_.on}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    const InnerProductParameter& p = params<InnerProductParameter>();
    require(p.num_output() > 0,
            "inner_product_param has no num_output (or 0): how many values shall each sample get?");
    axis_ = bottoms[0].canonical_axis(p.axis());
    outputs_ = p.num_output();
    inputs_ = bottoms[0].count(axis_);
    transposed_ = p.transpose();
    bias_ = p.bias_term();
    if (type() == "InnerProduct+ReLU") relu_ = {true, params<ReLUParameter>().negative_slope()};
    add_parameter(transposed_ ? Shape{inputs_, outputs_} : Shape{outputs_, inputs_},
                  p.weight_filler());
    if (bias_) add_parameter({outputs_}, p.bias_filler());
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.count(axis_) == inputs_, "the bottom has shape ", x.brief(), ", that is ",
            x.count(axis_), " values a sample, but the weights were made for ", inputs_);
    Shape y;
    for (int axis = 0; axis < axis_; ++axis) y.push_back(x[axis]);
    y.push_back(outputs_);
    return {{y}, {}};
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    const int64_t rows = x.shape().count(0, axis_);
    on(x, [&]<typename T>() {
      gemm(context, {.transpose_b = !transposed_, .m = rows, .n = outputs_, .k = inputs_},
           x.data<T>(), pass.parameters[0].data<T>(), y.data<T>());
      if (bias_ || relu_.on) {
        add_bias(context, rows, outputs_, 1, bias_ ? pass.parameters[1].data<T>() : nullptr, relu_,
                 y.data<T>());
      }
    });
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor &x = pass.bottom[0], &dy = pass.top_diff[0];
    const int64_t rows = x.shape().count(0, axis_);
    on(x, [&]<typename T>() {
      if (relu_.on)
        relu_gradient(context, dy.count(), pass.top[0].data<T>(), relu_.slope, dy.data<T>());
      if (const Tensor& dw = pass.parameter_diff[0]) {
        const T *left = transposed_ ? x.data<T>() : dy.data<T>(),
                *right = transposed_ ? dy.data<T>() : x.data<T>();
        gemm(context,
             {.transpose_a = true,
              .m = dw.shape()[0],
              .n = dw.shape()[1],
              .k = rows,
              .beta = pass.accumulate[0] ? 1.f : 0.f},
             left, right, dw.data<T>());
      }
      if (bias_ && pass.parameter_diff[1]) {
        bias_gradient(context, rows, outputs_, 1, dy.data<T>(), pass.parameter_diff[1].data<T>(),
                      pass.accumulate[1]);
      }
      if (const Tensor& dx = pass.bottom_diff[0]) {
        gemm(context, {.transpose_b = transposed_, .m = rows, .n = inputs_, .k = outputs_},
             dy.data<T>(), pass.parameters[0].data<T>(), dx.data<T>());
      }
    });
  }

  int axis_ = 1;
  int64_t inputs_ = 0, outputs_ = 0;
  bool transposed_ = false, bias_ = true;
  Relu relu_;
};

std::unique_ptr<Layer> make() { return std::make_unique<InnerProductLayer>(); }
[[maybe_unused]] const bool registered_with_relu =
    LayerRegistry::add("InnerProduct+ReLU", {make, __FILE__});

}  // namespace
REGISTER_LAYER(InnerProduct, InnerProductLayer);
}  // namespace crema
