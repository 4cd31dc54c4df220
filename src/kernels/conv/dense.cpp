#include "kernels/conv/dense.h"

#include "kernels/gemm/gemm.h"
#include "tensor/on.h"

namespace crema {
namespace {

class GemmDense final : public LinearKernel {
 public:
  explicit GemmDense(const DenseCase& c) : c_(c) {}

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor&) override {
    on(x, [&]<typename T>() {
      gemm(context, {.transpose_b = !c_.transposed, .m = c_.rows, .n = c_.outputs, .k = c_.inputs},
           x.data<T>(), w.data<T>(), y.data<T>());
      if (c_.bias || c_.relu.on) {
        add_bias(context, c_.rows, c_.outputs, 1, c_.bias ? b.data<T>() : nullptr, c_.relu,
                 y.data<T>());
      }
    });
  }

  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor&) override {
    on(g.dy, [&]<typename T>() {
      gemm(context, {.transpose_b = c_.transposed, .m = c_.rows, .n = c_.inputs, .k = c_.outputs},
           g.dy.data<T>(), w.data<T>(), dx.data<T>());
    });
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor&, bool accumulate, bool,
                        const Tensor&) override {
    on(x, [&]<typename T>() {
      const T *left = c_.transposed ? x.data<T>() : g.dy.data<T>(),
              *right = c_.transposed ? g.dy.data<T>() : x.data<T>();
      gemm(context,
           {.transpose_a = true,
            .m = c_.transposed ? c_.inputs : c_.outputs,
            .n = c_.transposed ? c_.outputs : c_.inputs,
            .k = c_.rows,
            .beta = accumulate ? 1.f : 0.f},
           left, right, dw.data<T>());
    });
  }

 private:
  DenseCase c_;
};

std::unique_ptr<LinearKernel> make_dense_gemm(Context&, const DenseCase& c, std::string& reason) {
  if (!is_half(c.dtype)) return std::make_unique<GemmDense>(c);
  reason = cat("no ", name_of(c.dtype));
  return nullptr;
}

REGISTER_KERNEL(dense_kernels, "plain", RunsOn::both, 0, make_dense_gemm);

}  // namespace

constinit KernelMakers<LinearKernel, DenseCase> dense_kernels("the matrix product");

ConvCase conv_case_of(const DenseCase& c) {
  ConvCase one;
  one.x = {c.rows, c.inputs, 1};
  one.w = {c.outputs, c.inputs, 1};
  one.y = {c.rows, c.outputs, 1};
  one.stride = one.dilation = {1};
  one.pad = {0};
  one.bias = c.bias;
  one.relu = c.relu;
  one.relu_gradient_applied = c.relu_gradient_applied;
  one.dropout = c.dropout;
  one.order = Order::channels_last;
  one.backward_data = c.backward_data;
  one.backward_weights = c.backward_weights;
  one.is_candidate = c.is_candidate;
  one.dtype = c.dtype;
  one.precision = c.precision;
  one.quantization = c.quantization;
  one.packs_weights = c.packs_weights;
  return one;
}

std::unique_ptr<LinearKernel> make_dense(Context& context, const DenseCase& c) {
  if (!c.quantization) return dense_kernels.make(context, c);
  ConvCase one = conv_case_of(c);
  if (!c.packs_weights) one.weights_format = Format::row_major();
  return make_conv(context, one);
}

}  // namespace crema
